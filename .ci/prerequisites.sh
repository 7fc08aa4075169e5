#!/usr/bin/env bash
# Installs the Debian packages that restar needs and the machine lacks: above all the Python that tool calls
# run in with the libraries of the paper's environment. Without the rights to install, it prints the exact command.
set -euo pipefail

packages=(make git ca-certificates python3 python3-numpy python3-scipy python3-sympy)
missing=()

if ! command -v dpkg-query >/dev/null; then
  echo "restar: this is no Debian system; make sure that /usr/bin/python3 exists and can import numpy, scipy and sympy" >&2
  exit 0
fi
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ! command -v go >/dev/null; then
  echo "restar: there is no Go; install version $(awk '$1 == "go" {print $2}' "$(dirname "$0")/../go.mod") or newer from https://go.dev/dl/ and put it on the PATH" >&2
  exit 2
fi
((${#missing[@]})) || exit 0

install=(install --yes --no-install-recommends "${missing[@]}")
if ((EUID != 0)); then
  {
    echo "restar: Debian packages are missing, and installing them needs root. Run this as root, then the same command again:"
    echo "    apt-get update && apt-get ${install[*]}"
  } >&2
  exit 2
fi
echo "restar: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Another apt may hold the lock for a while after boot; ten minutes is longer than unattended upgrades of a fresh machine.
wait=(-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 --quiet)
if ! { apt-get "${wait[@]}" update && apt-get "${wait[@]}" "${install[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "restar: the packages could not be installed (above); mend that and run the same command again" >&2
  exit 2
fi
