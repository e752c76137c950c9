#!/usr/bin/env bash
# Following a pod's log by Watch of Kubernetes' Python client drops the last line, if no line break ends it.
#
# Seen with: kubernetes 37.0.2, CPython 3.11.
#
# Watch().stream(read_namespaced_pod_log, …) yields whole lines and forgets what is left at the end of the stream. A
# container that is killed, or whose last word is printed without a line break, loses the very line that says why it
# ended. The same call without Watch returns it.
#
# Output seen:
#   Watch: ['epoch 1', 'epoch 2']
#   without Watch: ['epoch 1', 'epoch 2', 'error: out of memory']
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check kubernetes==37.0.2

cat > follow.py <<'PYTHON'
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kubernetes import client, watch

LOG = b"epoch 1\nepoch 2\nerror: out of memory"


class Log(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(LOG)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Log)
threading.Thread(target=server.serve_forever, daemon=True).start()
configuration = client.Configuration(host=f"http://127.0.0.1:{server.server_port}")
pods = client.CoreV1Api(client.ApiClient(configuration))
pod = {"name": "trainer", "namespace": "team"}
print("Watch:", list(watch.Watch().stream(pods.read_namespaced_pod_log, **pod)))
print("without Watch:", pods.read_namespaced_pod_log(**pod).splitlines())
PYTHON

venv/bin/python follow.py | tee found
diff seen found
