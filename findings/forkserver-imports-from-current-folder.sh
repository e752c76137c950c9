#!/usr/bin/env bash
# multiprocessing's fork server imports modules of the current folder in the place of the standard library's.
#
# Seen with: CPython 3.11, Linux x86-64.
#
# A script sees the modules of its own folder; those of the folder that it is started in play no part. The server of
# multiprocessing.get_context("forkserver") is started as `python -c`, which has the current folder first in its module
# path, and does not take over the path of its parent. So a data file's neighbor named random.py or tokenize.py, which
# has nothing to do with the script, ends the server, and starting a process raises EOFError. `python -P` for the script
# helps, as the server is started with the same flag; a command that is installed by pip has no such flag.
#
# Output seen:
#   beside random.py: EOFError
#   beside random.py, with -P: exit code 0
#
# Fails if the first works, too, or if the second does not.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"  # nothing in it has imported random before
mkdir "$folder/script" "$folder/elsewhere"
echo 'raise RuntimeError("not the standard library")' > "$folder/elsewhere/random.py"

cat > "$folder/script/start.py" <<'PYTHON'
import multiprocessing


def work() -> None:
    pass


if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tempfile"])  # one of the modules that import random
    process = context.Process(target=work)
    try:
        process.start()
        process.join()
        print("exit code", process.exitcode)
    except EOFError:
        print("EOFError")
PYTHON

cd "$folder/elsewhere"
plain=$(../venv/bin/python ../script/start.py 2> /dev/null)
safe=$(../venv/bin/python -P ../script/start.py)
echo "beside random.py: $plain"
echo "beside random.py, with -P: $safe"
[ "$plain" = "EOFError" ] && [ "$safe" = "exit code 0" ]
