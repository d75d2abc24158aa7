#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_claims.sh PROGRAM GOLDEN: the verdicts whose evidence takes a second at most, against GOLDEN
# (id,verdict), that every statement is there, and the report.
set -u
golden=$(realpath "$2")
scripts=$(realpath "$(dirname "$0")")
. "$(dirname "$0")/checks.sh"

attnum list claims --format csv
expect_exit 0
tail -n +2 stdout | cut -d, -f2 | sort >listed
tail -n +2 "$golden" | cut -d, -f1 | sort >expected
cmp -s listed expected
check "the statements are those of $(basename "$golden")" $?

ids='S01 S06 S07 S10 S11 S12 S14 S16 S18 S20 S21 S22 S23 S24 M01 M08 U01 U02 U04 U05 N02 N03 N04'
attnum claims $ids --out kept
expect_exit 0
expect_quiet
for id in $ids; do
    verdict=$(sed -n "s/^$id,//p" "$golden")
    # in claims.csv it stands between other fields; on stdout alone behind the id
    grep -qx "$id  *$verdict" stdout
    check "$id $verdict" $?
done
if attnum list parts && grep -q 'certify  *FLINT' stdout; then
    for id in S11 S12 S22 S23; do
        grep -E "^$id," kept/claims.csv | grep -q ',yes,'
        check "$id is certified" $?
    done
fi
[ -s kept/norm-growth/spectral/norm_growth.csv ] && grep -q 'norm-growth/spectral/norm_growth.csv' kept/claims.md
check "the evidence is next to the report" $?
if command -v python3 >/dev/null; then
    python3 "$scripts/claims_page.py" kept >parsed 2>&1
    good=$?
    sed 's/^/      /' parsed
    check "claims.html: well-formed, whole, and nothing outside it" $good
else
    echo "SKIP  claims.html: needs python3"
fi
if command -v gnuplot >/dev/null; then
    grep -q '<image id="figure-norm-growth"' kept/claims.html && grep -q '<use href="#figure-norm-growth"' kept/claims.html
    check "the plots are in it" $?
fi
finish
