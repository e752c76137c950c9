#!/usr/bin/env bash
# kstatus takes a custom resource that says "Failed" for Current, unless it says so in the one condition that it knows.
#
# Seen with: sigs.k8s.io/cli-utils 0.37.2, the library by which Flux and Helm 4 wait for what they have applied.
#
# Of a kind that it does not know, kstatus reads observedGeneration and the conditions Reconciling, Stalled and Ready.
# A phase and a condition Failed, which controllers of jobs write, count for nothing: the resource is Current, and so is
# one without any status. Reconciling beside Stalled hides it, where it comes first in the list.
#
# Output seen:
#   phase Failed and Failed=True: Current
#   no status at all: Current
#   Ready=False: InProgress
#   Stalled=True: Failed
#   Reconciling=True, then Stalled=True: InProgress
#   Stalled=True of generation 1: InProgress
#
# Needs Go. Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
go mod init kstatus.test 2>/dev/null
go get sigs.k8s.io/cli-utils@v0.37.2 2>/dev/null

cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	json "sigs.k8s.io/json"
)

var objects = []struct{ what, status string }{
	{"phase Failed and Failed=True", `{"observedGeneration": 2, "phase": "Failed", "conditions": [{"type": "Failed", "status": "True"}]}`},
	{"no status at all", `null`},
	{"Ready=False", `{"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "False"}]}`},
	{"Stalled=True", `{"observedGeneration": 2, "conditions": [{"type": "Stalled", "status": "True"}]}`},
	{"Reconciling=True, then Stalled=True", `{"observedGeneration": 2, "conditions": [{"type": "Reconciling", "status": "True"}, {"type": "Stalled", "status": "True"}]}`},
	{"Stalled=True of generation 1", `{"observedGeneration": 1, "conditions": [{"type": "Stalled", "status": "True"}]}`},
}

func main() {
	for _, each := range objects {
		var object map[string]any
		text := `{"apiVersion": "example.com/v1", "kind": "Job", "metadata": {"name": "a", "generation": 2}, "status": ` + each.status + `}`
		if err := json.UnmarshalCaseSensitivePreserveInts([]byte(text), &object); err != nil {
			panic(err)
		}
		if object["status"] == nil {
			delete(object, "status")
		}
		result, err := status.Compute(&unstructured.Unstructured{Object: object})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", each.what, result.Status)
	}
}
GO
go mod tidy 2>/dev/null
go run . | tee found
diff "$folder/seen" found
