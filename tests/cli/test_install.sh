#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_install.sh SOURCE BUILD: installs into an empty folder, then compiles the C examples
# of README.md and lib/README.md against what was installed, by pkg-config alone, and runs them;
# then runs the installed program from another folder.
set -eu
source=$1
build=$2
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
meson install -C "$build" --no-rebuild --destdir "$target" >"$target/log" 2>&1 || {
    cat "$target/log"
    exit 1
}
pc=$(find "$target" -name attnum.pc)
[ -n "$pc" ] || { echo "attnum.pc is not installed"; exit 1; }
prefix=$target$(sed -n 's/^prefix=//p' "$pc")
libdir=$(dirname "$(find "$target" -name libattnum.so)")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH

# every C block becomes a file
awk -v out="$target/example" '/^```c$/ { n++; in_block = 1; next } /^```$/ { in_block = 0 }
    in_block { print > (out n ".c") }' "$source/README.md" "$source/lib/README.md"
flags=$(pkg-config --define-variable=prefix="$prefix" --cflags --libs attnum)
sanitize=
case $(nm -D "$libdir/libattnum.so") in
*__asan_init*) sanitize=-fsanitize=address,undefined ;;
esac
for number in 1 2; do
    example=$target/example$number
    # word splitting is wanted: flags are words
    cc -std=c11 -Wall -Wextra -Werror $sanitize "$example.c" $flags -o "$example"
    LD_LIBRARY_PATH=$libdir "$example" >"$example.out"
    cat "$example.out"
done
# they print what their comments say
grep -q 'y\[0\] = 10.2994' "$target/example1.out"
grep -qx 'not converged: X\[0\]\[0\] = 0' "$target/example2.out"

for file in share/man/man1/attnum.1 share/bash-completion/completions/attnum; do
    [ -s "$prefix/$file" ] || { echo "$file is not installed"; exit 1; }
done
cd "$target"
"$prefix/bin/attnum" run convergence/initialisation --quick --out here \
    >"$target/run" 2>&1 || { cat "$target/run"; exit 1; }
[ -s here/convergence/initialisation.csv ] || { echo "no CSV from the installed program"; exit 1; }
echo "install: library, headers, pkg-config file and program work"
