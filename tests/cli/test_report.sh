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
grep -q '<li>4 <span class="verdict whole">whole</span>' r/index.html && grep -q '<li>17 <span class="verdict missing">' r/index.html
check 'how many are in each state' $?
grep -q '<dt>attnum</dt><dd>[^;]*</dd>' r/index.html
check 'what all runs have in common is there once' $?
grep -qF '<li><a href="networks/counts.csv">networks/counts.csv</a>: ' r/index.html &&
    grep -q '<li>convergence/curves.csv (missing): ' r/index.html
check 'the CSVs that there are, and those that are missing' $?
! grep -qE 'src="[^d]|https?://[^w]|<link|@import' r/index.html
check 'nothing is read from elsewhere' $?
grep -q 'There are no verdicts in this folder; <code>attnum claims --out r/claims</code>' r/index.html
check 'there are no verdicts, and it says so' $?
grep -q '<code>attnum run convergence/curves --out r</code> runs it' r/index.html
check 'what is missing, with the command that makes it here' $?
grep -q '^<thead>.*<th>56 × 56, stride kept, m = 196</th>' r/index.html && ! grep -q '|---' r/index.html
check 'a table in a list is a table' $?
grep -q '^<p>Whether the stride' r/index.html && grep -q '^<p>Ten more networks' r/index.html
check 'a paragraph in a list is one' $?
mkdir "a b'c"
attnum report "a b'c"
grep -qF '<code>attnum run cost/time --out &#39;a b&#39;\&#39;&#39;c&#39;</code>' "a b'c/index.html"
check 'the name of the folder is quoted' $?

# ---- CSVs that are not all of one run of their experiment ----
attnum run spectral/softmax --quick --input smooth --seed 2 --out other
expect_exit 0
cp -r r kept
# expect_not_whole STATE WHAT: one of the four results is not whole; then all of them are whole again.
expect_not_whole() {
    attnum report r
    expect_exit 0
    expect_quiet
    text="whole 3, $1 1, missing 17"
    [ "$1" != missing ] || text='whole 3, missing 18'
    grep -qF "$text" stdout
    check "$2: $1" $?
    rm -r r
    cp -r kept r
}
touch r/spectral/softmax.journal
expect_not_whole missing 'a run that did not end'
cp other/spectral/softmax_fit.csv* r/spectral/
expect_not_whole changed 'a CSV of another run'
cp r/networks/counts.csv* r/cost/
expect_not_whole changed "another experiment's CSV"
sed -i 's|"networks/counts"|"cost/counts"|' r/networks/counts*.json
expect_not_whole changed "all of another experiment's CSVs"
cp r/networks/counts_parts.csv r/networks/counts.csv
cp r/networks/counts_parts.csv-metadata.json r/networks/counts.csv-metadata.json
expect_not_whole changed 'another CSV of the experiment'
sed -i 's/"fingerprint"/"finger"/' r/networks/counts*.json
expect_not_whole changed 'CSVs that name no run'

# ---- merged results: the machines that ran the shards ----
for shard in 1/2 2/2; do
    attnum run networks/counts --quick --shard $shard --out shards
    expect_exit 0
done
attnum merge shards --out merged
expect_exit 0
awk '/"shards":/ { shards = 1 } shards && /"isa":/ { sub(/:[^"]*"[^"]*"/, ": \"set" ++n "\"") } { print }' \
    merged/networks/counts.csv-metadata.json >edited
sed 's/"date":[^,]*/"date": "2026-02-03T04:05:06Z"/' edited >merged/networks/counts.csv-metadata.json
attnum report merged
expect_exit 0
expect_stdout 'whole 1, missing 20'
grep -q '<dt>Instruction set</dt><dd>set1; set2</dd>' merged/index.html
check 'the instruction sets of the shards' $?
grep -q '<span class="time">2026-02-03 04:05 UTC' merged/index.html
check 'when it was run' $?

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
    grep '<a href="#spectral-softmax">' r/index.html | grep -q '<td>–</td></tr>$'
    check 'what is missing has no time' $?
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
attnum claims A01 S11 --out r/claims
attnum report r
expect_exit 0
expect_stdout '; verdicts whole → r/index.html'
grep -q 'claims/claims.html#A01' r/index.html
check 'a verdict is in the page' $?
grep -q '<td><span class="verdict fails">fails</span></td>' r/index.html
check 'in its colour' $?
cp -r r/claims claims
# expect_changed WHAT: claims.csv is not what attnum claims wrote; then it is again.
expect_changed() {
    attnum report r
    expect_exit 0
    expect_quiet
    expect_stdout '; verdicts changed → r/index.html'
    grep -q 'statements <span class="verdict changed">' r/index.html && ! grep -q 'claims.html#' r/index.html
    check "$1: no verdicts are shown" $?
    cp claims/claims.csv* r/claims
}
sed '$d' claims/claims.csv >r/claims/claims.csv
expect_changed 'a row is missing'
sed 's/,fails,/,holds,/' claims/claims.csv >r/claims/claims.csv
expect_changed 'a verdict is another'
if command -v python3 >/dev/null; then
    # forge OLD NEW: edits claims.csv, and its metadata so that they are of it.
    forge() {
        python3 - "$1" "$2" <<'PY'
import hashlib, json, sys
raw = open("r/claims/claims.csv", "rb").read().replace(*(word.encode() for word in sys.argv[1:]))
open("r/claims/claims.csv", "wb").write(raw)
metadata = json.load(open("r/claims/claims.csv-metadata.json"))
metadata |= {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
json.dump(metadata, open("r/claims/claims.csv-metadata.json", "w"))
PY
    }
    forge ,fails, ',"x"" style=""z""><b a=""",'
    attnum report r
    expect_exit 0
    grep -q '<td>x&quot; style=&quot;z&quot;&gt;&lt;b a=&quot;</td>' r/index.html
    check 'what is no verdict is text' $?
    cp claims/claims.csv* r/claims
fi
(
    ulimit -f 4
    exec "$program" report r >stdout 2>stderr
)
code=$?
expect_exit 3
[ "$(tail -c 8 r/index.html)" = '</html>' ]
check 'on a full disk the old page is left' $?

finish
