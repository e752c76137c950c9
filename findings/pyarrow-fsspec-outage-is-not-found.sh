#!/usr/bin/env bash
# pyarrow reports a server that is down as a file that does not exist, if it reads through fsspec.
#
# Seen with: pyarrow 26.0.1, fsspec 2026.9.0, CPython 3.11.
#
# pyarrow's FSSpecHandler asks `isfile(path)` before it opens a file, and raises FileNotFoundError if the answer is
# False. The isfile of fsspec's base class, and that of its HTTP filesystem, returns False after any exception: also
# after a refused connection, a time-out or a refused login. So a reader that treats a missing file as "not written yet"
# goes on without it while the server is away. fsspec's own `open` raises the real error.
#
# Output seen:
#   fsspec:  ClientConnectorError
#   pyarrow: FileNotFoundError
#
# Fails if pyarrow raises something else than FileNotFoundError.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1 "fsspec[http]==2026.9.0"

cat > "$folder/read.py" <<'PYTHON'
import socket
import sys

import fsspec
from pyarrow import fs

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]  # where no server listens
uri = f"http://127.0.0.1:{port}/table.parquet"
server = fsspec.filesystem("http")


def error_of(read):
    try:
        read()
    except Exception as error:
        return type(error)
    return None


through_fsspec = error_of(lambda: server.cat_file(uri))
through_pyarrow = error_of(lambda: fs.PyFileSystem(fs.FSSpecHandler(server)).open_input_file(uri))
print(f"fsspec:  {through_fsspec.__name__}")
print(f"pyarrow: {through_pyarrow.__name__}")
sys.exit(through_pyarrow is not FileNotFoundError or through_fsspec is FileNotFoundError)
PYTHON

"$folder/venv/bin/python" "$folder/read.py"
