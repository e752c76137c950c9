#!/usr/bin/env bash
# s3fs and pyarrow replace a whole object by half of one if the program fails within their "with", as if S3 were a disk.
#
# Seen with: s3fs 2026.9.0, pyarrow 26.0.1, smart_open 9.0.2, moto 5.2.5, boto3 1.43.117, CPython 3.11.
#
# An upload to S3 is atomic: the object is there when it is complete, and the old one stays until then. But leaving the
# block by an exception closes the file, and closing completes the upload of what was written so far. A checkpoint, or a
# table of predictions, that was there before is replaced by a part of the new one, at the moment when something else
# went wrong. smart_open gives the upload up, and the old object stays.
#
# Output seen:
#   s3fs, fails after 4 bytes: the object is 4 new bytes
#   s3fs, fails after 20000000 bytes: the object is 20000000 new bytes
#   pyarrow, fails after 4 bytes: the object is 4 new bytes
#   pyarrow, fails after 20000000 bytes: the object is 20000000 new bytes
#   smart_open, fails after 4 bytes: the object is old and whole
#   smart_open, fails after 20000000 bytes: the object is old and whole
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  s3fs==2026.9.0 pyarrow==26.0.1 smart_open==9.0.2 'moto[server]==5.2.5' boto3==1.43.117

cat > half.py <<'PYTHON'
import os

import boto3
import s3fs
import smart_open
from moto.server import ThreadedMotoServer
from pyarrow.fs import S3FileSystem

os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
endpoint = f"http://{host}:{port}"
client = boto3.client("s3", endpoint_url=endpoint)
client.create_bucket(Bucket="runs")
writers = {
    "s3fs": lambda path: s3fs.S3FileSystem(endpoint_url=endpoint).open(path, "wb"),
    "pyarrow": lambda path: S3FileSystem(endpoint_override=endpoint, scheme="http").open_output_stream(path),
    "smart_open": lambda path: smart_open.open(f"s3://{path}", "wb", transport_params={"client": client}),
}
for name, open_file in writers.items():
    for size in (4, 20_000_000):
        client.put_object(Bucket="runs", Key=name, Body=b"old and whole")
        try:
            with open_file(f"runs/{name}") as file:
                file.write(b"n" * size)
                raise MemoryError  # before the rest is written
        except MemoryError:
            body = client.get_object(Bucket="runs", Key=name)["Body"].read()
            left = body.decode() if body.startswith(b"old") else f"{len(body)} new bytes"
            print(f"{name}, fails after {size} bytes: the object is {left}")
server.stop()
PYTHON

venv/bin/python half.py 2>/dev/null | tee found
diff seen found
