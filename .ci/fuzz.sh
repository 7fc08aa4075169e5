#!/usr/bin/env bash
# Runs every fuzz test for a time (20s), one after the other. An input that fails one is written to testdata/fuzz beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Go before 1.27 may report the end of the time as a failure; one of the code names its input or a seed.
ended() { grep -qx ' *context deadline exceeded' "$log" && ! grep -qE 'Failing input written|failure while testing' "$log"; }

for file in $(grep -rl '^func Fuzz' --include='*_test.go' activities cmd kernels workers workflows | sort); do
	for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "$name in ${file%/*}"
		# Making inputs smaller that are merely new would take most of a short time: 60 s each by default.
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 1s "./${file%/*}" 2>&1 | tee "$log" || ended
	done
done
