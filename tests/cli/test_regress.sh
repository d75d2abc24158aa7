#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_regress.sh PROGRAM EMULATED SOURCE [OPERATOR TYPES WORSENED]...: attnum regress against the
# rows that are kept; and by programs in whose library an operator is less accurate than it was, which
# must lose digits in just that operator and these types.
set -u
emulated=$(realpath "$2")
golden=$(realpath "$3/data/golden")/accuracy.csv
here=$(dirname "$(realpath "$0")")
sound=$(realpath "$1")
worsened=$(mktemp)
shift 3
while [ $# -gt 0 ]; do
    echo "$1 $2 $(realpath "$3")" >>"$worsened"
    shift 3
done
set -- "$sound"
. "$here/checks.sh"
mv "$worsened" worsened

# ---- mistakes ----
attnum regress --help
expect_exit 0
expect_stdout '--update REASON'
attnum regress --update '  '
expect_usage '--update' 'expected a reason'
attnum regress --update ''
expect_usage '--update'
attnum regress --update why --operator soft
expect_usage '--update' '--operator'
attnum regress --update why --against "$golden"
expect_usage '--against'
attnum regress --seed 2
expect_usage '--seed'
attnum regress --dtype bf16
expect_usage '--dtype bf16'
attnum regress "$golden"
expect_usage '--against FILE.csv'
attnum regress "$golden" --against "$golden" --operator soft
expect_usage '--against FILE.csv'
attnum regress --baseline none.csv --operator sima --out none
expect_exit 3
expect_one_error 'none.csv' 'No such file'
expect_no_file none

# ---- tables that regress did not write ----
# refused FILE TEXT...: compared with the golden rows, with these texts in one line
refused() {
    file=$1
    attnum regress "$golden" --against "$file"
    expect_exit 3
    expect_one_error "$@"
}
printf 'a,b\n1,2\n' >foreign.csv
refused foreign.csv 'row 1, column 1' "found 'a', expected 'operator'"
: >empty.csv
refused empty.csv 'empty'
head -c 3000 "$golden" >cut.csv
refused cut.csv 'column'
head -n 1 "$golden" >bare.csv
refused bare.csv 'no rows'
sed '3s/,pass$/,good/' "$golden" >verdict.csv
refused verdict.csv 'row 3, column verdict' 'expected pass, marginal, FAIL or skipped'
sed '1!{/,pass$/{s/,[^,]*,\([^,]*\),pass$/,nan,\1,pass/}}' "$golden" >nan.csv
refused nan.csv 'column roundings' 'expected a number from 0 on'
sed '2p' "$golden" >twice.csv
refused twice.csv 'two rows of soft/paper f32 on photos, n = 64'
sed '2s/,64,/,64.0,/' "$golden" >number.csv
refused number.csv 'row 2, column n'

# ---- nothing is lost: all rows, kept anew, against those kept before ----
mkdir kept
sed '/^sima,code,f64,cpu,64,,32,iid,/d' "$golden" >kept/accuracy.csv
attnum regress --baseline kept/accuracy.csv --update "it's a \"test\"" --out full
expect_exit 0
expect_quiet
expect_stdout 'what changes in the baseline'
grep -q '^new  *sima  *code  *f64  *cpu  *64 ' stdout
check "an update lists what is new" $?
grep -q '"reason":.*"it.s a \\"test\\""' kept/accuracy.csv-metadata.json
check "and says why" $?
grep -q '"commit":[[:space:]]*"\(unknown\|[0-9a-f]*\(-dirty\)*\)"' kept/accuracy.csv-metadata.json
check "and of which sources" $?
! grep -q '"date"\|"command"\|"cpu":' kept/accuracy.csv-metadata.json
check "but not when and where" $?
attnum regress kept/accuracy.csv --against "$golden"
expect_exit 0
expect_quiet
[ "$(cut -d, -f1-9 kept/accuracy.csv)" = "$(cut -d, -f1-9 "$golden")" ]
check "the rows are those of $golden" $?
attnum regress full/regress.csv --against "$golden"
expect_exit 0
[ "$(wc -l <full/regress.csv)" -eq "$(wc -l <"$golden")" ]
check "a run's own table has a row for each" $?
mkdir cut
cp full/regress.csv-metadata.json cut
head -n 5 full/regress.csv >cut/regress.csv
refused cut/regress.csv 'is not the file that cut/regress.csv-metadata.json describes'
attnum regress cut/regress.csv --against "$golden"
expect_exit 3
expect_one_error 'is not the file that cut/regress.csv-metadata.json describes'

# ---- rows that are gone; a part of them is not the lack of the others ----
sed '/^sima,code,f64,cpu,64,,32,iid,/d' "$golden" >less.csv
attnum regress less.csv --against "$golden"
expect_exit 1
grep -q '^gone  *sima  *code  *f64  *cpu  *64 ' stdout
check "the row that is gone" $?
expect_stdout ' 1 gone'
expect_stdout 'accuracy is lost'
attnum regress "$golden" --against less.csv
expect_exit 0
expect_stdout '1 new'
attnum regress --baseline "$golden" --operator lsh --input iid --out part
expect_exit 0
expect_quiet
[ "$(tail -n +2 part/regress.csv | grep -c ',same$')" -eq 10 ]
check "ten rows of one operator on one input" $?

# ---- nothing is lost in the instruction sets that this processor does not choose ----
for isa in $("$program" list parts --format csv | sed -nE 's/^parts,(base|avx[0-9]*),found,.*/\1/p'); do
    attnum regress --baseline "$golden" --isa "$isa" --input iid --dtype f32 --out "isa-$isa"
    expect_exit 0
    expect_quiet
done

# ---- a device without rows ----
program=$emulated
attnum regress --baseline "$golden" --device cuda --operator sima/code --input iid --out cuda
expect_exit 0
expect_stdout "compared with the CPU's"
grep -q '^sima,code,f64,cuda,64,.*,cpu,.*,same$' cuda/regress.csv
check "rows of the device in addition to the CPU's" $?

# ---- less accurate programs ----
while read -r operator types file; do
    program=$file
    attnum regress --baseline "$golden" --input iid --out lost
    expect_exit 1
    expect_stdout 'accuracy is lost'
    found=$(tail -n +2 lost/regress.csv | grep -E ',(LOST|FAIL|gone)$' | cut -d, -f1,3 | sort -u | tr '\n' ' ')
    expected=$(for type in $(echo "$types" | tr , ' '); do printf '%s,%s ' "$operator" "$type"; done)
    [ "$found" = "$expected" ]
    check "lost: $found, expected: $expected" $?
    rm -r lost
done <worsened
grep -q . worsened
check "there were such programs" $?

finish
