#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_inspect.sh PROGRAM: attnum inspect, from a file of tokens to its advice, CSV and report.
set -u
. "$(dirname "$0")/checks.sh"

# ---- mistakes: one line, and nothing written ----
attnum inspect
expect_exit 2
expect_one_line
attnum inspect one.npy two.npy
expect_usage 'expected one FILE.npy'
attnum inspect tokens.txt
expect_exit 2
expect_one_error "'tokens.txt'" 'FILE.npy'
attnum inspect missing.npy
expect_exit 3
expect_one_error missing.npy
head -c 64 /dev/zero | npy zeros.npy '<f8' '4, 2'
printf '\000\000\000\000\000\000\370\177' >nan
{ head -c 56 /dev/zero; cat nan; } | npy nan.npy '<f8' '4, 2'
attnum inspect nan.npy
expect_exit 3
expect_one_error nan.npy 'nan' 'finite'
attnum inspect zeros.npy --m 5
expect_exit 2
expect_one_error '--m 5' 'zeros.npy' '4 tokens'
attnum inspect zeros.npy --grid 3x2
expect_exit 2
expect_one_error '--grid 3x2'
attnum inspect zeros.npy --scale embed
expect_exit 2
expect_one_error '--scale embed'
attnum inspect zeros.npy --seed 2
expect_usage '--seed'
attnum inspect zeros.npy --shard 1/2
expect_usage '--shard' 'not an option here'
attnum inspect zeros.npy --html page.html --resume
expect_usage '--html' '--resume'
attnum inspect zeros.npy --html nowhere/page.html
expect_exit 3
expect_one_error 'nowhere/page.html'
mkdir folder.html
attnum inspect zeros.npy --html folder.html --out other
expect_exit 3
expect_one_error 'folder.html'
attnum inspect zeros.npy --skip-tokens 4
expect_exit 2
expect_one_error '--skip-tokens 4' '4 tokens'
attnum inspect zeros.npy --layout bnhd
expect_exit 3
expect_one_error 'zeros.npy' '2 dimensions' 'the 4 of --layout bnhd'
attnum inspect zeros.npy --landmarks zeros.npy --m 2
expect_exit 2
expect_one_error '--m: not with --landmarks'
head -c 24 /dev/zero | npy narrow.npy '<f8' '1, 3'
attnum inspect zeros.npy --landmarks narrow.npy
expect_exit 3
expect_one_error 'narrow.npy' 'of width 2'
for number in 1 2 3 4; do printf '\000\000\000\000\000\000\360\077\000\000\000\000\000\000\131\300'; done | npy far.npy '<f8' '4, 2'
attnum inspect zeros.npy --landmarks far.npy --out far # as many as tokens, but not these
expect_stdout 'Landmarks do not reach the tokens'
expect_no_stdout 'tokens are landmarks'
attnum inspect zeros.npy --sampling windows
expect_exit 2
expect_one_error "--sampling 'windows'" 'did you mean window'
attnum inspect zeros.npy --dtype f32,bf16
expect_exit 2
expect_one_error '--dtype: several'
for option in '--layout nd' '--skip-tokens 1' '--landmarks zeros.npy'; do
    attnum inspect iid $option
    expect_exit 2
    expect_one_error "${option%% *}: only FILE.npy takes it"
done
[ -z "$(find . -name '.*.tmp')" ]
check "nothing half-written stays" $?
expect_no_file results
attnum inspect --help
expect_exit 0
expect_stdout '--html FILE'

# ---- small and odd files ----
attnum inspect zeros.npy --out zeros
expect_exit 0
expect_quiet
expect_stdout 'rank 1 of 4'
expect_stdout 'on the boundary of convergence'
head -c 16 /dev/zero | npy single.npy '<f8' '1, 2'
attnum inspect single.npy --out single
expect_exit 0
expect_quiet
attnum inspect zeros.npy --dry-run --html page.html --out dry
expect_exit 0
expect_no_file dry
expect_no_file page.html

# ---- another layout: said where it shows, and not where it is given ----
head -c 512 /dev/zero | npy heads.npy '<f8' '1, 16, 2, 2'
attnum inspect heads.npy --out heads --quick --m 2
expect_exit 0
expect_stderr '1 x 16 x 2 x 2 is taken for b x h x n x d, more heads than tokens'
attnum inspect heads.npy --out given --quick --m 2 --layout bhnd
expect_exit 0
expect_quiet
attnum inspect heads.npy --out tokens --quick --m 4 --layout bshd
expect_exit 0
expect_quiet
expect_stdout '2 heads, 16 tokens of width 2'

# ---- a real run: tokens that attnum wrote, in a file whose name is hostile ----
attnum bench --quick --operator soft --n 196 --batch 1 --emit-tokens tokens
name="<script>&\"it's\".npy"
mv tokens/*_q.npy "./$name"
attnum inspect "./$name" --out results --threads 2 --html report.html --m 16,49
expect_exit 0
expect_quiet
expect_stdout 'grid 14x14'
[ "$(sed -n '4s/:.*//p' stdout)" = Conclusion ]
check "the conclusion comes before all else" $?
! grep -q '20 steps are too many' stdout
check "no word against that on the steps" $?
expect_stdout 'batch 0, head '
expect_stdout '[measured]'
expect_stdout '[predicted]'
attnum inspect "./$name" --out again --threads 1 --m 16,49
expect_exit 0
for csv in inspect inspect_inverses inspect_precisions inspect_spectrum inspect_advice inspect_advice_numbers; do
    cmp -s results/$csv.csv again/$csv.csv
    check "$csv.csv: the same bits from one thread and two" $?
    [ -s results/$csv.csv-metadata.json ]
    check "$csv.csv has metadata" $?
done
[ "$(grep -c ',pool,true,' results/inspect.csv)" -eq "$(grep -c ',window,false,' results/inspect.csv)" ]
check "a row per head, m and sampling" $?
head -n 1 results/inspect.csv | grep -q '^batch,head,m,sampling,main,tokens,.*,kappa,.*,trace_ratio$'
check "the columns" $?

# ---- the report: one page, well formed, that asks for nothing outside it ----
command='report.html'
! grep -qiE 'https?:|//[a-z]|<script|<link|<iframe|@import|src=|href=' report.html
check "no address, no script" $?
! grep -oE 'url\([^)]*\)' report.html | grep -qv '^url(#clip[0-9]*)$'
check "urls are the page's own" $?
grep -qE '(NOT )?safe by the papers' report.html
check "the conclusion is there" $?
grep -q '&lt;script&gt;&amp;' report.html
check "the file's name is escaped" $?
[ "$(grep -c '<svg viewBox="0 0 480' report.html)" -eq 5 ]
check "five figures" $?
[ "$(grep -c '<desc id=' report.html)" -eq 5 ] && [ "$(grep -c '<title id=' report.html)" -eq 5 ]
check "each with a title and a description" $?
! grep -qE '(nan|inf)[" ]' report.html
check "no number that is none in a drawing" $?
if command -v python3 >/dev/null; then
    python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' report.html >parsed 2>&1
    check "well-formed" $?
fi
grep -q 'prefers-color-scheme:dark' report.html && grep -q 'width=device-width' report.html
check "light and dark, wide and narrow" $?

finish
