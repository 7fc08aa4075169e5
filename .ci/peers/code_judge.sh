#!/usr/bin/env bash
# Installs or runs the reproduction of code-judge's design: Redis, workers and server, until it is told to stop.
# Usage: code_judge.sh install | code_judge.sh serve REDIS_PORT HTTP_PORT WORKERS
set -euo pipefail
here=$(dirname "$0")
packages=(redis-server python3-fastapi python3-uvicorn python3-redis)

case $1 in
install)
  missing=()
  for package in "${packages[@]}"; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $status == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || exit 0
  if ((EUID != 0)); then
    echo "restar-bench: to compare with code-judge's design, run as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 0
  fi
  echo "restar-bench: installing ${missing[*]} (Debian)" >&2
  export DEBIAN_FRONTEND=noninteractive
  # A machine that runs no services would start Redis's own otherwise.
  wait=(-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 --quiet)
  apt-get "${wait[@]}" update >/dev/null && RUNLEVEL=1 apt-get "${wait[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null ||
    echo "restar-bench: code-judge's design cannot be had and is left out" >&2
  ;;
serve)
  redis=$2 http=$3 workers=$4
  redis-server --port "$redis" --bind 127.0.0.1 --save '' --appendonly no --daemonize no --loglevel warning >/dev/null &
  children=($!)
  trap 'kill "${children[@]}" 2>/dev/null; wait' EXIT
  trap 'exit 0' TERM INT
  until redis-cli -p "$redis" ping >/dev/null 2>&1; do sleep 0.1; done
  /usr/bin/python3 "$here/code_judge.py" work "$redis" "$workers" &
  children+=($!)
  /usr/bin/python3 "$here/code_judge.py" serve "$redis" "$http" &
  children+=($!)
  wait -n
  ;;
esac
