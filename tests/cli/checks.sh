# SPDX-License-Identifier: BSD-3-Clause
# What the command line tests share; read in with the shell's dot, as `. checks.sh PROGRAM`. Sets up an
# empty folder to work in.
program=$(realpath "$1")
folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 3
failures=0
failed=
command=

# check NAME STATUS: counts and prints one check.
check() {
    if [ "$2" -eq 0 ]; then
        echo "ok    $command: $1"
    else
        echo "FAIL  $command: $1"
        sed 's/^/      stdout: /' stdout | head -n 5
        sed 's/^/      stderr: /' stderr | head -n 5
        failures=$((failures + 1))
        failed="$failed
FAIL  $command: $1"
    fi
}

# Runs the program; its output goes to the files stdout and stderr.
attnum() {
    command="attnum $*"
    "$program" "$@" >stdout 2>stderr </dev/null
    code=$?
}

expect_exit() {
    [ "$code" -eq "$1" ]
    check "exit code $1, was $code" $?
}

# expect_stdout TEXT, expect_stderr TEXT: a fixed text is there.
expect_stdout() {
    grep -qF -e "$1" stdout
    check "stdout has '$1'" $?
}

expect_stderr() {
    grep -qF -e "$1" stderr
    check "stderr has '$1'" $?
}

expect_no_stdout() {
    ! grep -qF -e "$1" stdout
    check "stdout has no '$1'" $?
}

# A mistake gives one line on stderr that starts with the program's name, and nothing else.
expect_one_line() {
    [ "$(wc -l <stderr)" -eq 1 ] && grep -q '^attnum: ' stderr && [ ! -s stdout ]
    check "one line on stderr only" $?
}

expect_quiet() {
    [ ! -s stderr ]
    check "nothing on stderr" $?
}

expect_no_file() {
    [ ! -e "$1" ]
    check "no $1" $?
}

# expect_usage TEXT...: exit code 2, one line, and the texts in it.
expect_usage() {
    expect_exit 2
    expect_one_line
    for text in "$@"; do
        expect_stderr "$text"
    done
}

# expect_one_error TEXT...: one line of ours on stderr, with the texts in it.
expect_one_error() {
    [ "$(wc -l <stderr)" -eq 1 ] && grep -q '^attnum: ' stderr
    check "one line on stderr" $?
    for text in "$@"; do
        expect_stderr "$text"
    done
}

# npy NAME DESCR SHAPE: writes the head of a format 1.0 file; the data follow from stdin.
npy() {
    header="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
    # 10 bytes before the header, a newline after: a multiple of 64 together
    length=$(((${#header} + 11 + 63) / 64 * 64 - 10))
    {
        printf '\223NUMPY\001\000'
        printf "\\$(printf %o $((length % 256)))\\$(printf %o $((length / 256)))"
        printf "%-$((length - 1))s\n" "$header"
        cat
    } >"$1"
}

# Names what failed once more, at the end of a long output.
finish() {
    echo "$failures checks failed$failed"
    [ "$failures" -eq 0 ]
}
