#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run_suite.sh PROGRAM SOURCE...: runs a Criterion program and compares the number of tests it ran
# with the number its sources define. ATTNUM_TEST_JOBS: how many at the same time; 1 by default.
# ATTNUM_TEST_FILTER: only these, which are those of the sources.
set -u
program=$1
shift
output=$(mktemp) || exit 3
trap 'rm -f "$output"' EXIT
"$program" --jobs "${ATTNUM_TEST_JOBS:-1}" ${ATTNUM_TEST_FILTER:+--filter "$ATTNUM_TEST_FILTER"} >"$output" 2>&1
status=$?
cat "$output"
[ "$status" -ne 77 ] || exit 77 # skipped as a whole, and it has said why
defined=$(cat "$@" | grep -cE '^(Test|Theory)\(')
tested=$(sed -E 's/\x1b\[[0-9;]*m//g' "$output" | sed -nE 's/.*Tested: ([0-9]+).*/\1/p' | tail -n 1)
if [ "${tested:-0}" -ne "$defined" ]; then
    echo "run_suite.sh: ${tested:-0} tests ran, $defined are defined in: $*" >&2
    exit 1
fi
exit $status
