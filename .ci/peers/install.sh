#!/usr/bin/env bash
# Installs what restar-bench compares with, once: Debian's PyTorch, oneDNN, a C compiler and Node.js from Debian; the newest PyTorch and
# gguf from PyPI; llama.cpp, prebuilt in node-llama-cpp, from npm. A peer that cannot be had is told of; the benchmark leaves it out.
# Usage: install.sh FOLDER
set -uo pipefail

peers=$1
llama=3.21.1 # the newest release whose builds were all on npm
mkdir -p "$peers"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# try WHAT COMMAND...: quiet unless it fails
try() {
  echo "restar-bench: installing $1" >&2
  if ! "${@:2}" >"$log" 2>&1; then
    echo "restar-bench: $1 cannot be had and is left out:" >&2
    tail -n 3 "$log" >&2
    return 1
  fi
}

debian() {
  local missing=() package status
  command -v dpkg-query >/dev/null || return 0
  for package in python3-torch python3-numpy libopenblas0-pthread libdnnl-dev gcc libc6-dev; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $status == installed ]] || missing+=("$package")
  done
  command -v npm >/dev/null || missing+=(nodejs npm)
  python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    echo "restar-bench: to compare with all peers, run as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    return 0
  fi
  export DEBIAN_FRONTEND=noninteractive
  local wait=(-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 --quiet)
  try "${missing[*]} (Debian)" bash -c "apt-get ${wait[*]} update && apt-get ${wait[*]} install --yes --no-install-recommends ${missing[*]}"
}

torch() {
  "$peers/torch/bin/python" -c 'import torch, numpy, gguf' 2>/dev/null && return 0
  rm -rf "$peers/torch"
  try "the newest PyTorch (PyPI, some 5 GB)" bash -c "python3 -m venv '$peers/torch' && '$peers/torch/bin/pip' install --quiet torch numpy gguf"
}

llama() {
  [[ -f $peers/llama/installed-$llama ]] && return 0
  rm -rf "$peers/llama"
  mkdir -p "$peers/llama"
  echo '{"private": true}' >"$peers/llama/package.json"
  # Without optional packages, as those hold builds for other systems; without scripts, as those would build from source.
  try "llama.cpp (npm)" npm install --prefix "$peers/llama" --save-exact --omit=optional --ignore-scripts --no-audit --no-fund \
    "node-llama-cpp@$llama" "@node-llama-cpp/linux-x64@$llama" && touch "$peers/llama/installed-$llama"
}

debian
torch
llama
exit 0
