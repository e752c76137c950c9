#!/usr/bin/env bash
# merge of Helm's templates replaces a value that is false, 0 or empty by the default that it was to override.
#
# Seen with: github.com/Masterminds/sprig/v3 3.3.0, which holds the functions of Helm's templates.
#
# `merge .Values.user $defaults` is meant to keep what the first one has. It keeps only what is not empty in Go's sense:
# a user who turns something off, or asks for no replicas, gets the default, without a word. With mergeOverwrite, false
# and 0 of the later one do win.
#
# Output seen:
#   merge: {"enabled":true,"name":"mine","replicas":3}
#   mergeOverwrite, arguments swapped: {"enabled":false,"name":"mine","replicas":0}
#
# Needs Go. Fails if either line differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
go mod init merge.test 2>/dev/null
go get github.com/Masterminds/sprig/v3@v3.3.0 2>/dev/null

cat > main.go <<'GO'
package main

import (
	"os"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

const text = `{{- $user := dict "enabled" false "replicas" 0 "name" "mine" -}}
{{- $defaults := dict "enabled" true "replicas" 3 "name" "trainer" -}}
merge: {{ merge (deepCopy $user) $defaults | toJson }}
mergeOverwrite, arguments swapped: {{ mergeOverwrite (deepCopy $defaults) $user | toJson }}
`

func main() {
	if err := template.Must(template.New("").Funcs(sprig.TxtFuncMap()).Parse(text)).Execute(os.Stdout, nil); err != nil {
		panic(err)
	}
}
GO
go mod tidy 2>/dev/null
go run . | tee found
diff seen found
