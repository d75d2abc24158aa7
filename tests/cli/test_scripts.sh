#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_scripts.sh SOURCE: scripts/check-format where it has nothing to check, with a formatter that accepts everything;
# what scripts say of themselves.
set -u
source=$1
folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
failures=0
mkdir "$folder/bin" "$folder/scripts"
printf '#!/bin/sh\necho "clang-format version 14.0.6 $*"\n' >"$folder/bin/clang-format-14"
chmod +x "$folder/bin/clang-format-14"
cp "$source/scripts/check-format" "$folder/scripts/"
touch "$folder/one.c"

# ends NAME CODE TEXT COMMAND...: with that exit code, and says so.
ends() {
    name=$1 wanted=$2 text=$3
    shift 3
    GIT_CEILING_DIRECTORIES=${folder%/*} PATH=$folder/bin:$PATH "$@" >"$folder/log" 2>&1
    code=$?
    if [ "$code" -eq "$wanted" ] && grep -q -e "$text" "$folder/log"; then
        echo "ok    $name"
    else
        echo "FAIL  $name: exit code $code"
        sed 's/^/      /' "$folder/log"
        failures=$((failures + 1))
    fi
}

check="$folder/scripts/check-format"
ends 'a word that it does not know' 2 'expected --fix' "$check" --fxi
ends 'a folder that is no clone' 128 'not a git repository' "$check"
git -C "$folder" init -q
ends 'a clone without C files' 3 'no C file' "$check"
git -C "$folder" add one.c
ends 'a clone with one' 0 'dry-run --Werror one.c' "$check"
ends 'to be changed' 0 '-i one.c' "$check" --fix
ends 'test --help' 0 'suite slow .*seeds faults' "$source/scripts/test" --help
ends 'gpu-evidence --help' 0 'Python.s packages; for the part python' "$source/scripts/gpu-evidence" --help
ends 'gpu-compare --help' 0 'Exit code 1: a file is missing' "$source/scripts/gpu-compare" --help
ends 'gpu-compare of nothing' 2 'arguments are required' "$source/scripts/gpu-compare"
echo "$failures checks failed"
[ "$failures" -eq 0 ]
