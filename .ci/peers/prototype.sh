#!/usr/bin/env bash
# Builds the sandbox prototype that the benchmark compares with, from its sources (Go and C), for the one who has them. Without them,
# a compiler or its modules it is left out.
# Usage: prototype.sh SOURCES FOLDER
set -uo pipefail
sources=$1 folder=$2
[[ -f $sources/go.mod ]] || exit 0
[[ -x $folder/sbx && ! $(find "$sources" -newer "$folder/sbx") ]] && exit 0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

compile() {
  local version module
  rm -rf "$folder" && mkdir -p "$folder" && cp -R --no-preserve=mode "$sources/." "$folder" || return 1
  gcc -O2 -shared -fPIC -o "$folder/shim/shim.so" "$folder/shim/shim.c" || return 1
  gcc -O2 -static -nostdlib -fno-stack-protector -ffreestanding -fno-builtin -Wl,-z,noexecstack -Wl,--build-id=none \
    -o "$folder/shim/init" "$folder/shim/init.c" || return 1
  for module in $(go list -m -f '{{if not .Main}}{{.Path}}{{end}}' all | grep -x -F -f <(awk '/^\t/ {print $1}' "$folder/go.mod")); do
    version=$(go list -m -f '{{.Version}}' "$module") # what this machine has already
    go -C "$folder" mod edit -require="$module@$version" || return 1
  done
  GOFLAGS=-mod=mod go -C "$folder" build -o sbx .
}
echo "restar-bench: building the sandbox prototype" >&2
if ! compile >"$log" 2>&1; then
  echo "restar-bench: the prototype cannot be built and is left out:" >&2
  tail -n 3 "$log" >&2
fi
