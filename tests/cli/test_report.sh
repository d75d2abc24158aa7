#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_report.sh PROGRAM: the page of a folder of results, whatever state they are in.
set -u
. "$(dirname "$0")/checks.sh"

# expect_state EXPERIMENT CLASS: the page says so in the table and at the experiment.
expect_state() {
    python3 - "$1" "$2" <<'PY'
import sys
import xml.etree.ElementTree as tree
page = tree.parse("r/index.html").getroot()  # well-formed, too
name, state = sys.argv[1:]
row = next(r for r in page.iter("tr") if any((a.text or "") == name for a in r.iter("a")))
section = next(s for s in page.iter("section") if s.get("id") == name.replace("/", "-"))
for part in (row, section.find("h2")):
    pill = next(s for s in part.iter("span") if "verdict" in s.get("class", ""))
    assert pill.get("class") == "verdict " + state, pill.get("class")
PY
    check "$1 is $2" $?
}

attnum report nowhere
expect_exit 3
expect_one_error 'nowhere' 'attnum run all'
attnum report one two
expect_exit 2
expect_one_error '2 folders' 'expected one'
attnum run networks/counts spectral/softmax spectral/bounds cost/counts --quick --input smooth --out r
expect_exit 0
attnum report r
expect_exit 0
expect_quiet
expect_stdout 'whole 4, missing 17 → r/index.html'
grep -q '<dt>Commit</dt><dd>[0-9a-f]\{7,\}\|<dt>Commit</dt><dd>unknown' r/index.html
check 'the commit of the sources' $?
cp r/index.html first
attnum report r
cmp -s first r/index.html
check 'the same page of the same results' $?
[ "$(find r -maxdepth 1 -type f)" = r/index.html ]
check 'nothing else is written' $?
grep -q 'src="data:image/png;base64,' r/index.html || ! command -v gnuplot >/dev/null
check 'a figure is in the page' $?
! grep -qE 'src="[^d]|https?://[^w]|<link|@import' r/index.html
check 'nothing is read from elsewhere' $?
grep -q 'There are no verdicts' r/index.html
check 'there are no verdicts, and it says so' $?

if command -v python3 >/dev/null; then
    expect_state networks/counts whole
    expect_state convergence/curves missing
    echo >>r/networks/counts_parts.csv # not the first of its CSVs
    rm r/spectral/softmax.csv
    sed -i 's/"exit_code":[^,]*/"exit_code": 1/' r/spectral/bounds.csv-metadata.json
    sed -i 's/"exit_code":[^,]*/"exit_code": 77/; s|"command":.*|"command": "<script>\&amp;",|' r/cost/counts.csv-metadata.json
    attnum report r
    expect_exit 0
    expect_quiet
    expect_stdout 'skipped 1, check failed 1, changed 1, missing 18'
    expect_state networks/counts changed
    expect_state spectral/softmax missing
    expect_state spectral/bounds check-failed
    expect_state cost/counts skipped
    grep -q '&lt;script&gt;&amp;amp;' r/index.html
    check 'what metadata say is text' $?
    printf '{"run": 7}' >r/cost/counts.csv-metadata.json
    printf '[' >r/spectral/bounds.csv-metadata.json
    attnum report r
    expect_exit 0
    expect_state spectral/bounds missing
fi
mkdir r/claims
cp r/index.html first
echo nonsense >r/claims/claims.csv
attnum report r
expect_exit 3
expect_one_error 'claims.csv'
cmp -s first r/index.html
check 'the old page is left' $?
attnum claims A01 --out r/claims
attnum report r
expect_exit 0
grep -q 'claims/claims.html#A01' r/index.html
check 'a verdict is in the page' $?
(
    ulimit -f 4
    exec "$program" report r >stdout 2>stderr
)
code=$?
expect_exit 3
[ "$(tail -c 8 r/index.html)" = '</html>' ]
check 'on a full disk the old page is left' $?

finish
