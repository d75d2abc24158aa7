#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_format.sh PROGRAM: what stdout holds under --format: the tables alone, as they are in the files.
set -u
here=$(realpath "$(dirname "$0")")
. "$(dirname "$0")/checks.sh"

# expect_json FOLDER: stdout is JSON and holds the folder's CSVs.
expect_json() {
    command -v python3 >/dev/null || return 0
    python3 "$here/same_tables.py" stdout "$1" >differences 2>&1
    check "is JSON, of the tables in $1: $(head -n 1 differences)" $?
}

# ---- one table, two tables ----
one='run convergence/initialisation --quick'
attnum $one --out one --format csv
expect_exit 0
expect_quiet
cmp -s stdout one/convergence/initialisation.csv
check "CSV on stdout is the file" $?
two='run cost/counts networks/counts --quick'
attnum $two --out two --format csv
expect_exit 0
expect_quiet
echo >empty
cat two/cost/counts.csv empty two/cost/counts_formulas.csv empty two/networks/counts.csv empty \
    two/networks/counts_parts.csv | cmp -s - stdout
check "tables are parted by an empty line" $?
attnum $two --out two --format json
expect_exit 0
expect_quiet
expect_json two
attnum $one --out one --format=table
expect_exit 0
expect_stdout '% attnum '
expect_stdout 'rows'

# ---- complete already, or nothing to do ----
attnum $one --out one --format csv --resume
expect_exit 0
cmp -s stdout one/convergence/initialisation.csv
check "CSV of results that exist already" $?
attnum $two --out two --format json --resume
expect_exit 0
expect_json two
printf 'a\n' >one/convergence/initialisation.csv
attnum $one --out one --format csv --resume
! grep -qx a stdout
check "a file that is none of ours is not printed" $?
attnum run convergence/curves --input missing.npy --format json
expect_exit 3
[ "$(tr -d '\n' <stdout)" = '{}' ]
check "a run without results is an empty object" $?

# ---- shards ----
for shard in 1 2; do
    attnum $one --out parts --shard $shard/2
    expect_exit 0
done
attnum merge parts --out merged --format csv
expect_exit 0
cmp -s stdout merged/convergence/initialisation.csv
check "CSV on stdout is the file" $?
attnum $one --shard 1/2 --format csv
expect_usage '--format csv' '--shard'

for shard in 1 2; do
    attnum run cost/counts --quick --out parts --shard $shard/2
done
attnum merge parts --out merged --format json
expect_exit 0
expect_quiet
expect_json merged

# ---- inspect: its tables, the advice among them ----
attnum inspect iid --quick --m 16 --heads 1 --out looked --format csv
expect_exit 0
expect_quiet
for table in '' _inverses _precisions _spectrum _advice _advice_numbers; do
    [ -z "$table" ] || cat empty
    cat looked/inspect$table.csv
done | cmp -s - stdout
check "CSV on stdout is that of six files" $?
[ "$(grep -cE '^(warning|tip|fine),[a-z-]+,(measured|predicted|certified),' looked/inspect_advice.csv)" -ge 4 ]
check "severity, rule and basis of each sentence" $?
attnum inspect photos --quick --out seen --format json
expect_exit 0
expect_quiet
expect_json seen
if command -v python3 >/dev/null; then
    python3 "$here/advice_numbers.py" seen >differences 2>&1
    check "numbers of the advice: $(head -n 1 differences)" $?
fi

# ---- check: heads and mistakes, which no file holds ----
attnum check --emit-case cases --operator sima/code,sima/l2
case=cases/sima-code
wrong="--operator sima/l2 --tokens $case/tokens.npy --keys $case/keys.npy --values $case/values.npy --output $case/output.npy"
# expect_tables: four tables on stdout, and nothing else
expect_tables() {
    awk 'BEGIN { RS = ""; FS = "\n"; split("heads mistakes results summary", name, " ") }
        { print > ("judged/check/" name[NR] ".csv") } END { exit NR != 4 }' stdout
    check "four tables" $?
}
mkdir -p judged/check
attnum check $wrong --format csv
expect_exit 1
expect_quiet
expect_tables
[ "$(grep -c '^0,[0-9]*,FAIL,.*,output$' judged/check/heads.csv)" -eq 2 ]
check "a verdict per head" $?
grep -q '^variant sima/code,.*,true,output$' judged/check/mistakes.csv
check "what it is instead" $?
grep -q '^output,exact,FAIL,it is cheap,0,false$' judged/check/results.csv
check "a verdict per result" $?
grep -q '^[0-9.]*,sima,l2,f64,.*,FAIL,1$' judged/check/summary.csv
check "one for all, with what was judged" $?
attnum check $wrong --format json
expect_exit 1
expect_quiet
expect_json judged/check
attnum check $(echo "$wrong" | sed 's,/l2 ,/code ,') --format json
expect_exit 0
expect_quiet
expect_stdout '"mistakes": []'

# ---- regress: a run, and two files ----
rows='regress --operator sima/code --input iid'
attnum $rows --out now --format csv
expect_exit 0
expect_quiet
cmp -s stdout now/regress.csv
check "CSV on stdout is regress.csv" $?
attnum $rows --out now --format json
expect_exit 0
expect_quiet
expect_json now
attnum regress now/regress.csv --against now/regress.csv --format json
expect_exit 0
expect_quiet
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; rows = json.load(open("stdout"))["regress"]["regress"]
sys.exit(len(rows) != 10 or {row["comparison"] for row in rows} != {"same"})'
    check "ten rows, all the same" $?
fi
sed 2d now/regress.csv >less.csv
attnum regress less.csv --against now/regress.csv --format csv
expect_exit 1
expect_quiet
[ "$(sed 1d stdout | grep -c ',same$')" -eq 9 ] && [ "$(grep -c ',gone$' stdout)" -eq 1 ]
check "CSV of two files has the row that is gone" $?

# ---- claims, list ----
attnum claims S11 S20 --out kept --format csv
expect_exit 0
expect_quiet
cmp -s stdout kept/claims.csv
check "CSV on stdout is claims.csv" $?
attnum claims S11 S20 --format json
expect_exit 0
mkdir only && cp kept/claims.csv only
expect_json only
attnum list --format csv
mkdir list && cp stdout list/list.csv
attnum list --format json
expect_exit 0
{
    printf '{"list": {"list": '
    cat stdout
    printf '}}'
} >wrapped && mv wrapped stdout
expect_json list

# ---- texts that JSON has to write otherwise ----
name=$(printf 'quote"back\\slash\ttab\377.npy')
{
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': (16, 2), }"
    seq 1 16 | awk '{ printf "abcdefg?hijklmn@" }'
} >"$name"
attnum run spectral/eigenvalues --quick --input "$name" --m 4 --out named --format json
expect_exit 0
expect_stdout 'quote\"back\\slash\u0009tab\ufffd.npy'
if command -v python3 >/dev/null; then
    python3 -m json.tool stdout >parsed 2>&1
    check "is JSON" $?
fi

# ---- what prints no table ----
attnum $one --dry-run --format csv
expect_usage '--format csv' '--dry-run'
attnum claims S11 --dry-run --format json
expect_usage '--format json' '--dry-run'
attnum bench --quick --emit-tokens tokens --format csv
expect_usage '--format csv' '--emit-tokens'
attnum check --emit-case more --format json
expect_usage '--format json' '--emit-case'
attnum $rows --dry-run --format csv
expect_usage '--format csv' '--dry-run'
attnum $one --format xml
expect_usage "--format 'xml'" 'table, csv, json'
finish
