"""Memory between blocks that stay goes back to the system."""

import subprocess
import sys

PROCESS = """
from pathlib import Path
from trainjob.launch.freed_memory import return_freed_memory

def resident_pages():
    return int(Path("/proc/self/statm").read_text().split()[1])

large, small = [], []
for _ in range(2_000):
    large.append(b"x" * 65_536)
    small.append(b"x" * 1_024)
large.clear()
before = resident_pages()
return_freed_memory()
print(before - resident_pages())
"""
MIB_IN_PAGES = 2**20 // 4096


def test_freed_memory_goes_back_to_the_system() -> None:
    """In a process of its own, whose heap has no room that other tests have left."""
    done = subprocess.run([sys.executable, "-c", PROCESS], check=True, capture_output=True, text=True, timeout=300)
    assert int(done.stdout) > 64 * MIB_IN_PAGES
