#!/usr/bin/env bash
# Builds one Go binary and shows how far it is: packages compiled so far of those that are not in the build cache yet.
# Usage: build.sh OUTPUT MODULE_FOLDER PACKAGE
set -euo pipefail

output=$1 module=$2 package=$3
name=$(basename "$output")
cd "$module"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Listing fetches the modules. Packages whose result the build cache lacks are stale; their count only feeds the display.
echo "$name: fetching Go modules" >&2
if ! stale=$(go list -deps -f '{{if .Stale}}x{{end}}' "$package" 2>"$log"); then
  cat "$log" >&2
  echo "$name: the Go modules could not be fetched (above); check the network and GOPROXY and run the same command again" >&2
  exit 2
fi
todo=$(grep -c x <<<"$stale" || true)
start=$SECONDS

show() { # done
  local left=""
  if (($1 > 20 && todo > $1)); then
    left=", about $((((SECONDS - start) * (todo - $1) / $1 + 59) / 60)) min left"
  fi
  printf '%s%s: %d of %d packages compiled%s%s' "$prefix" "$name" "$1" "$todo" "$left" "$suffix"
}
if [[ -t 2 ]]; then
  prefix=$'\r\e[K' suffix="" every=0 last=$'\r\e[K'
else
  prefix="" suffix=$'\n' every=20 last=""
fi

# -v prints each package as its compilation begins; anything with a space is a message of the compiler and passes through.
follow() {
  local done=0 shown=$SECONDS
  while IFS= read -r line; do
    if [[ $line == *[[:space:]]* || $line != */* && $line != [a-z]* ]]; then
      printf '%s%s\n' "$last" "$line"
      continue
    fi
    done=$((done + 1))
    ((todo < done)) && todo=$done
    if ((SECONDS - shown >= every)); then
      show "$done"
      shown=$SECONDS
    fi
  done
  printf '%s' "$last"
}
go build -v -o "$output" "$package" 2> >(follow >&2) || failed=$?
wait
if [[ -n ${failed:-} ]]; then
  exit "$failed"
fi
echo "$name: built in $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s" >&2
