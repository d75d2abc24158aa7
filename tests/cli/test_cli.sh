#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_cli.sh PROGRAM: the command line of attnum, as a user meets it. A line per check; exits 1 if
# any failed. To add one: `attnum ARGUMENTS...`, then the expect_... lines that should hold.
set -u
. "$(dirname "$0")/checks.sh"

# ---- help and version ----
for option in --help -h; do
    attnum $option
    expect_exit 0
    expect_quiet
    expect_stdout 'exit code: 0'
    for verb in list run claims inspect check regress bench merge train; do
        expect_stdout "attnum $verb"
    done
done
attnum --version
expect_exit 0
[ "$(wc -l <stdout)" -eq 1 ] && grep -qE '^attnum [0-9]+\.[0-9]+\.[0-9]+$' stdout
check "one line, attnum X.Y.Z" $?
attnum
expect_usage 'no command' 'run, list'
attnum lits
expect_usage "'lits'" 'did you mean list?'

# ---- list ----
kinds='operators variants inverses experiments claims inputs samplings layouts references parts devices'
attnum list
expect_exit 0
expect_quiet
for kind in $kinds; do
    grep -qx "$kind" stdout
    check "has the kind $kind" $?
done
expect_stdout 'softpp'
expect_stdout 'pivoted-cholesky'
expect_stdout '  certify  '
for kind in $kinds; do
    attnum list "$kind" --format csv
    expect_exit 0
    [ "$(head -n 1 stdout)" = 'kind,name,description,parameters,capabilities,source' ]
    check "CSV header" $?
    [ "$(tail -n +2 stdout | grep -vc "^$kind,")" -eq 0 ]
    check "only $kind" $?
done
attnum list operators inputs --format=json
expect_exit 0
expect_quiet
expect_stdout '"soft"'
expect_stdout '"photos"'
expect_no_stdout '"dgesvd"'
if command -v python3 >/dev/null; then
    python3 -m json.tool stdout >parsed 2>&1
    check "is JSON" $?
fi
attnum list operators --format csv
grep -q '^operators,linformer,.*,f32 f64 cpu cuda backward mask cross lengths d/de d/df (' stdout
check "the parameters with a gradient" $?
grep -q '^operators,elu,.*,f32 f64 cpu cuda backward mask cross causal lengths,' stdout
check "none has one where none is named" $?
attnum list parts
[ "$(grep -c 'found; taken without --isa$' stdout)" -eq 1 ]
check "one instruction set is taken" $?
PATH=/nowhere "$program" list parts >stdout
expect_stdout 'not found: experiments make no plots'
attnum list --help
expect_exit 0
expect_stdout 'usage: attnum list'
attnum list operator
expect_usage "'operator'" 'did you mean operators?'
attnum list --format
expect_usage '--format' 'table, csv or json'
attnum list --format xml
expect_usage "--format 'xml'" 'table, csv, json'
attnum list --formta csv
expect_usage '--formta'
command='attnum list >/dev/full'
"$program" list >/dev/full 2>stderr
code=$?
: >stdout
expect_exit 3
expect_one_line

# ---- claims ----
attnum claims --help
expect_exit 0
expect_quiet
expect_stdout 'usage: attnum claims'
expect_no_stdout '--quick'
attnum claims S999
expect_usage "'S999'" 'unknown statement'
attnum claims S10 --quick
expect_usage '--quick'
attnum claims S10 --seed x
expect_usage "--seed 'x'"
attnum claims U04 --dry-run --seed 1:3
expect_exit 0
expect_quiet
expect_stdout 'attnum run attention/maps --quick --seed 1,2,3'
attnum claims S10
expect_exit 0
expect_quiet
expect_stdout 'S10  holds'
expect_stdout '0 < α < 2/λ_max²'
expect_no_file results
attnum claims S10 S10 M01 --out kept
expect_exit 0
expect_quiet
[ "$(wc -l <kept/claims.csv)" -eq 3 ]
check "a header and two verdicts" $?
[ -s kept/claims.md ] && [ -s kept/claims.csv-metadata.json ]
check "a report and metadata" $?
: >file
attnum claims S10 --out file
expect_exit 3
expect_one_error 'file' 'cannot make this folder'
rm -rf kept file

# ---- run: what is wrong for any experiment ----
attnum run
expect_usage 'no experiment given' 'all'
attnum run --help
expect_exit 0
expect_quiet
expect_stdout 'usage: attnum run'
expect_stdout '--seed LIST'
expect_no_stdout '--variant'
attnum run no/such
expect_usage "'no/such'" 'unknown experiment' 'all'
attnum run --quick no/such
expect_usage "'no/such'"
attnum run ''
expect_usage 'no experiment given'
attnum run --sede 1
expect_usage '--sede: unknown option' 'did you mean seed?'
attnum run no/such --seed
expect_exit 2
printf 'a\nb\033[31m' >name
attnum run "$(cat name)"
expect_usage 'a?b?[31m'

attnum run convergence/curves --variant nr --alpha 1e-3 --alpha 2
expect_usage '--alpha' 'given twice'
attnum run convergence/curves --samples 3 --samples=3
expect_usage '--samples' 'given twice'

# ---- run: every experiment ----
for experiment in $("$program" list experiments --format csv | tail -n +2 | cut -d , -f 2); do
    attnum run "$experiment" --help
    expect_exit 0
    expect_quiet
    expect_stdout "attnum run $experiment"
    expect_stdout 'example:'
    expect_stdout '--threads N'
    expect_no_stdout '(null)'
    attnum run "$experiment" --quick --dry-run
    expect_exit 0
    expect_quiet
    grep -qE "^$experiment: [1-9][0-9]* points\$" stdout
    check "counts its points" $?
    head -n 1 stdout | grep -qE '^% attnum [0-9.]+: attnum run '
    check "version and command first" $?
    expect_no_file results
    attnum run "$experiment" --seed 5:1
    expect_usage "--seed '5:1'" 'start:end'
    attnum run "$experiment" --threads 0
    expect_usage "--threads '0'" '1..1024'
    attnum run "$experiment" --sede=1
    expect_usage '--sede' 'did you mean seed?'
    attnum run "$experiment" --quick=1
    expect_usage '--quick' 'no value'
    attnum run "$experiment" --quick --full
    expect_usage '--quick and --full'
    attnum run "$experiment" --quick --out one --out two
    expect_usage '--out' 'given twice'
    expect_no_file one
    attnum run "$experiment" --quick --seed 1 --seed 2 --dry-run
    expect_exit 0
    attnum run "$experiment" --quick --out name/results
    expect_exit 3
    expect_stderr 'name'
    expect_no_file results
done

finish
