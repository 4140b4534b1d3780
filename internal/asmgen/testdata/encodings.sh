#!/usr/bin/env bash
# Prints what the GNU assembler (Debian: binutils-aarch64-linux-gnu) makes of the instructions behind the WORDs in
# generated assembly: the word, a tab, the text. neon.golden is its output for the instructions of neon_test.go.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
sed -n 's/^\tWORD \$0x[0-9a-f]* \/\/ //p' "$@" | LC_ALL=C sort -u >"$dir/texts"
aarch64-linux-gnu-as -march=armv8.6-a+sme -o "$dir/o" "$dir/texts"
aarch64-linux-gnu-objdump -d "$dir/o" | sed -n 's/^ *[0-9a-f]*:\t\([0-9a-f]*\) .*/\1/p' | paste - "$dir/texts"
