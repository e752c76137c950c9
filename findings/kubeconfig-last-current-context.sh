#!/usr/bin/env bash
# Of several files in KUBECONFIG, Kubernetes' Python client takes the last current-context; kubectl takes the first.
#
# Seen with: kubernetes 37.0.2.
#
# Of clusters, contexts and users of one name, the client keeps that of the first file, as kubectl does. But each later
# file replaces current-context. A program then talks to another cluster than kubectl in the same shell, without a word.
#
# Output seen:
#   current context: second; the context of both files: the first file's
#
# Fails if this line differs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet kubernetes==37.0.2
for name in first second; do
  cat > "$folder/$name.yaml" <<END
apiVersion: v1
kind: Config
clusters:
  - {name: $name, cluster: {server: "https://$name.example"}}
users:
  - {name: me, user: {token: secret}}
contexts:
  - {name: $name, context: {cluster: $name, user: me}}
  - {name: both, context: {cluster: $name, user: me, namespace: $name}}
current-context: $name
END
done
"$folder/venv/bin/python" - "$folder/first.yaml:$folder/second.yaml" <<'END'
import sys

from kubernetes import config

contexts, current = config.list_kube_config_contexts(sys.argv[1])
[both] = [each["context"]["namespace"] for each in contexts if each["name"] == "both"]
print(f"current context: {current['name']}; the context of both files: the {both} file's")
sys.exit((current["name"], both) != ("second", "first"))
END
