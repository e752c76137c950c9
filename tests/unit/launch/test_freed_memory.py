"""Memory between blocks that stay goes back to the system."""

from pathlib import Path

from trainjob.launch.freed_memory import return_freed_memory

MIB = 2**20


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


def test_freed_memory_goes_back_to_the_system() -> None:
    large, small = list[bytes](), list[bytes]()
    for _ in range(2_000):
        large.append(b"x" * 65_536)
        small.append(b"x" * 1_024)
    large.clear()
    before = resident_pages()
    return_freed_memory()
    assert before - resident_pages() > 64 * MIB // 4096
