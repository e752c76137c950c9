#!/usr/bin/env bash
# helm --set tolerations={} gives a list with one empty text, not an empty list.
#
# Seen with: helm.sh/helm/v3 3.22.0, whose package strvals reads --set.
#
# {a,b} is how --set writes a list, and {} in YAML an empty object; what comes out is neither. A chart that ranges over
# the list renders one empty item. Numbers are read by rules of their own as well: only whole ones up to 64 bits are
# numbers, 1.5 and 1e3 are texts, and [] is the text "[]". --set-json says what is meant.
#
# Output seen:
#   tolerations={}: {"tolerations":[""]}
#   tolerations=[]: {"tolerations":"[]"}
#   ratio=1.5: {"ratio":"1.5"}
#   steps=1e3: {"steps":"1e3"}
#   steps=1000: {"steps":1000}
#
# Needs Go. Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
go mod init set.test 2>/dev/null
go get helm.sh/helm/v3@v3.22.0 2>/dev/null

cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"helm.sh/helm/v3/pkg/strvals"
)

func main() {
	for _, each := range []string{"tolerations={}", "tolerations=[]", "ratio=1.5", "steps=1e3", "steps=1000"} {
		values, err := strvals.Parse(each)
		if err != nil {
			panic(err)
		}
		text, err := json.Marshal(values)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", each, text)
	}
}
GO
go mod tidy 2>/dev/null
go run . | tee found
diff seen found
