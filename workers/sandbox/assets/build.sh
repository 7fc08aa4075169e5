#!/bin/sh
# Builds shim.so and init.elf into the folder given (default: here). No paths, dates or build ids enter the files, so the
# same compiler gives the same bytes; BUILT_WITH names the compiler of the committed ones.
set -eu
src=$(cd "$(dirname "$0")" && pwd)
out=${1:-$src}
cd "$src"
gcc -O2 -Wall -Wextra -shared -fPIC -s -Wl,--build-id=none,-z,noexecstack,-z,relro,-z,now -o "$out/shim.so" shim.c
gcc -O2 -Wall -Wextra -static -nostdlib -ffreestanding -fno-builtin -fno-stack-protector -fno-pie -no-pie -s \
    -Wl,--build-id=none,-z,noexecstack -o "$out/init.elf" init.c
gcc -dumpfullversion > "$out/BUILT_WITH"
