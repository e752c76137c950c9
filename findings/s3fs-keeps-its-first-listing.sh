#!/usr/bin/env bash
# s3fs lists a folder of a bucket once: a file that another program writes there later does not exist, until the end.
#
# Seen with: s3fs 2026.9.0, moto 5.2.5, boto3 1.43.117, CPython 3.11.
#
# ls, glob, exists, info and the size all answer from the first listing of a folder, without a request and without a
# limit of time. A program that waits for another's result, or looks for the newest checkpoint, never sees it, and one
# that checks before it overwrites does not see what is there. Making a new filesystem gives the same object again.
# Asking for a file whose folder was not listed does send a request, so that a short test passes.
#
# Output seen:
#   first listing: ls 1.json, glob 1.json, 2.json exists: False, size of 1.json: 1
#   another program has written both: ls 1.json, glob 1.json, 2.json exists: False, size of 1.json: 1
#   a new S3FileSystem: ls 1.json, glob 1.json, 2.json exists: False, size of 1.json: 1
#   after invalidate_cache: ls 1.json 2.json, glob 1.json 2.json, 2.json exists: True, size of 1.json: 4
#   another program has deleted 2.json: ls 1.json 2.json, glob 1.json 2.json, 2.json exists: True, size of 1.json: 4
#   use_listings_cache=False: ls 1.json, glob 1.json, 2.json exists: False, size of 1.json: 4
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check s3fs==2026.9.0 'moto[server]==5.2.5' boto3==1.43.117

cat > wait.py <<'PYTHON'
import os

import boto3
import s3fs
from moto.server import ThreadedMotoServer

os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
endpoint = f"http://{host}:{port}"
other = boto3.client("s3", endpoint_url=endpoint)
other.create_bucket(Bucket="runs")
other.put_object(Bucket="runs", Key="run/1.json", Body=b"1")


def say(when, files):
    names = " ".join(name.removeprefix("runs/run/") for name in files.ls("runs/run"))
    exists, size = files.exists("runs/run/2.json"), files.info("runs/run/1.json")["size"]
    found = " ".join(name.removeprefix("runs/run/") for name in files.glob("runs/run/*.json"))
    print(f"{when}: ls {names}, glob {found}, 2.json exists: {exists}, size of 1.json: {size}")


files = s3fs.S3FileSystem(endpoint_url=endpoint)
say("first listing", files)
other.put_object(Bucket="runs", Key="run/1.json", Body=b"1234")
other.put_object(Bucket="runs", Key="run/2.json", Body=b"2")
say("another program has written both", files)
say("a new S3FileSystem", s3fs.S3FileSystem(endpoint_url=endpoint))
files.invalidate_cache()
say("after invalidate_cache", files)
other.delete_object(Bucket="runs", Key="run/2.json")
say("another program has deleted 2.json", files)
say("use_listings_cache=False", s3fs.S3FileSystem(endpoint_url=endpoint, use_listings_cache=False))
server.stop()
PYTHON

venv/bin/python wait.py 2>/dev/null | tee found
diff seen found
