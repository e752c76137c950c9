"""Packs the packages that benchmarks/gpu.py needs on a machine without network into one archive of less than 64 MiB.

The machine has Python (the version given by `--python`), PyTorch, transformers, accelerate, pandas, pyarrow and Pillow.
Unpack the archive there, beside this repository's `benchmarks/`:

    python3 -m tarfile -e build/gpu-carry.tar.xz /tmp/carried
    PYTHONPATH=/tmp/carried python3 benchmarks/gpu.py
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_BYTES = 56 * 2**20
"""Leaves space for the checkout."""
PACKAGES = (
    *("ray", "attrs", "click", "filelock", "jsonschema", "jsonschema-specifications", "msgpack", "protobuf"),
    *("referencing", "requests", "rpds-py", "certifi", "charset-normalizer", "idna", "urllib3"),
    *("pydantic", "pydantic-core", "annotated-types", "typing-inspection"),
    *("absl-py", "tensorboard", "typer", "shellingham"),
)
LEFT_OUT = (
    "bin",
    "ray/core/src/ray/gcs",
    "ray/core/src/ray/raylet/raylet",
    *(f"ray/{name}" for name in ("rllib", "serve", "jars", "llm", "dashboard/client", "cpp", "include")),
    "tensorboard/webfiles.zip",
)
"""Path prefixes to exclude: the parts that start a Ray cluster, and parts that local training does not open."""


def carried(path: str) -> bool:
    return not path.startswith(LEFT_OUT) and "__pycache__" not in path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="3.12", help="version of the other machine's Python")
    parser.add_argument("--without", nargs="*", default=[], help="packages that the other machine has besides")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "gpu-carry.tar.xz")
    arguments = parser.parse_args()
    names = [name for name in PACKAGES if name not in arguments.without]
    uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--system-certs", "--no-deps"]
    with tempfile.TemporaryDirectory() as folder:
        options = ["--python-version", arguments.python, "--only-binary", ":all:", "-c", str(ROOT / "constraints.txt")]
        subprocess.run([*uv, *options, "--no-binary", "trainjob", "--target", folder, *names, str(ROOT)], check=True)
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(arguments.output, "w:xz", preset=2) as archive:
            for file in sorted(Path(folder).rglob("*")):
                if file.is_file() and carried(path := os.fspath(file.relative_to(folder))):
                    archive.add(file, path)
    size = arguments.output.stat().st_size
    print(f"{arguments.output}: {size / 2**20:.1f} MiB")
    if size > MAX_BYTES:
        raise SystemExit(f"more than {MAX_BYTES / 2**20:.0f} MiB: leave out with --without what is there already")


if __name__ == "__main__":
    main()
