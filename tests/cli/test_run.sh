#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_run.sh PROGRAM: experiments run for real: bad input, whole output, the same bits from any
# number of threads, kills.
set -u
here=$(realpath "$(dirname "$0")")
. "$(dirname "$0")/checks.sh"

# ---- bad input: one line that names the file, the field and what was expected ----
expect_refused() {
    expect_exit 3
    expect_one_error "$@"
    expect_no_file results
}
curves='run convergence/curves --dtype f64 --variant nr-paper --input'

attnum $curves missing.npy
expect_refused missing.npy
: >empty.npy
attnum $curves empty.npy
expect_refused empty.npy
head -c 1000 /dev/zero | npy short.npy '<f8' '64, 4'
attnum $curves short.npy
expect_refused short.npy 'shape' 'truncated'
head -c 200 /dev/zero >magic.npy
attnum $curves magic.npy
expect_refused magic.npy 'magic'
head -c 2048 /dev/zero | npy object.npy '|O' '64, 4'
attnum $curves object.npy
expect_refused object.npy 'descr' "'|O'"
head -c 2048 /dev/zero | npy flat.npy '<f8' '256,'
attnum $curves flat.npy
expect_refused flat.npy 'shape'
npy none.npy '<f8' '0, 4' </dev/null
attnum $curves none.npy
expect_refused none.npy 'shape'
npy huge.npy '<f8' '4611686018427387904, 4' </dev/null
attnum $curves huge.npy
expect_refused huge.npy 'shape'
{
    head -c 1024 /dev/zero
    printf '\000\000\000\000\000\000\370\177'
    head -c 1016 /dev/zero
} | npy nan.npy '<f8' '64, 4'
attnum $curves nan.npy
expect_refused nan.npy '[32, 0]' 'finite'
head -c 2048 /dev/zero | npy tokens.npy '<f8' '64, 4'
attnum $curves tokens.npy --grid 7x9
expect_exit 2
expect_one_error '--grid' '64'
head -c 1920 /dev/zero | npy line.npy '<f8' '60, 4'
attnum run spectral/norm-growth --input line.npy --m 50
expect_exit 2
expect_one_error '--m 50' 'line.npy' '60'
attnum run spectral/norm-growth --input tokens.npy --m 4096
expect_exit 2
expect_one_error '--m' '64'
expect_no_file results

# ---- good input, and output that is whole ----
attnum $curves tokens.npy --out good
expect_exit 0
expect_quiet
head -n 1 good/convergence/curves.csv | grep -q '^input,stage,n,m,sampling,variant,dtype,device,iteration,'
check "CSV header" $?
for suffix in csv csv-metadata.json png svg; do
    [ -s "good/convergence/curves.$suffix" ]
    check "curves.$suffix is there" $?
done
[ "$(find good -type f | wc -l)" -eq 4 ]
check "nothing else is left" $?

# ---- a file whose tokens are on no grid ----
# expect_tables FOLDER: stdout holds the folder's CSVs.
expect_tables() {
    expect_exit 0
    expect_quiet
    command -v python3 >/dev/null || return 0
    python3 "$here/same_tables.py" stdout "$1" >differences 2>&1
    check "stdout holds every table and nothing else: $(head -n 1 differences)" $?
}
attnum run all --quick --dry-run
expect_exit 0
names=$("$program" list experiments --format csv | sed 1d | cut -d, -f2)
[ "$(sed -n 's/: [0-9]* points$//p' stdout | sort)" = "$(echo "$names" | sort)" ]
check "all are those that are listed" $?
# attention/half reads no file, and takes a third of the time of all others together
attnum run $(echo "$names" | grep -vx attention/half) --quick --input line.npy --dtype f64 --out line --format json
expect_tables line
attnum run attention/half --quick --n 49,196 --out half --format json
expect_tables half
[ "$(cut -d, -f2 line/spectral/norm_growth.csv | sort -n -u | tr '\n' ' ')" = 'm 4 9 15 20 30 60 ' ]
check "windows give the nearest to each usual m" $?

# ---- one experiment's failure outlasts the next one's success ----
mkdir blocked
: >blocked/networks
attnum run networks/counts cost/counts --quick --out blocked
expect_exit 3
[ -s blocked/cost/counts.csv ]
check "the next experiment runs" $?

# ---- the papers' start on A = I, said in so many words ----
attnum run convergence/initialisation --quick --out first --threads 1
expect_exit 0
grep '^identity' stdout | grep paper | grep -q 'not converged'
check "says not converged for A = I" $?
grep -q '^identity,49,paper,f64,2,1,1,-1,,[a-z]*,1,1' first/convergence/initialisation.csv
check "residual 1 for A = I under 2/|A|_1^2" $?

# ---- the same seed gives the same CSV, whatever the threads ----
small='run convergence/curves spectral/norm-growth --quick --samples 2 --input smooth --sampling pool'
attnum $small --m 4,16,49 --out one --threads 1
expect_exit 0
attnum $small --m 4,16,49 --out two --threads 2
expect_exit 0
for csv in $(cd one && find . -name '*.csv'); do
    cmp -s "one/$csv" "two/$csv"
    check "$csv is the same from 1 and 2 threads" $?
done

# ---- instruction sets ----
unset ATTNUM_ISA # whatever these tests run in
# attnum_in SET ARGUMENT...: with ATTNUM_ISA set
attnum_in() {
    export ATTNUM_ISA="$1"
    shift
    attnum "$@"
    unset ATTNUM_ISA
}
maps='run spectral/norm-growth --quick --samples 1 --input smooth --m 4'
attnum list parts --format csv
expect_exit 0
cp stdout parts
for isa in base avx2 avx512; do
    attnum $maps --isa $isa --out "option-$isa"
    if ! grep -q "^parts,$isa,found" parts; then # this processor lacks it
        expect_exit 3
        expect_one_error "--isa $isa" 'lacks'
        attnum_in $isa $maps
        expect_exit 3
        expect_one_error "ATTNUM_ISA '$isa'" 'lacks'
        continue
    fi
    expect_exit 0
    attnum_in $isa $maps --out "variable-$isa"
    expect_exit 0
    for way in option variable; do
        grep -q "\"isa\":	*\"$isa\"" $way-$isa/spectral/norm_growth.csv-metadata.json
        check "the metadata name $isa, chosen by $way" $?
    done
    cmp -s option-$isa/spectral/norm_growth.csv variable-$isa/spectral/norm_growth.csv
    check "the same from --isa and ATTNUM_ISA" $?
done
[ "$(grep -c '^parts,[a-z0-9]*,found; taken' parts)" -eq 1 ]
check "one of them is taken by itself" $?
attnum $maps --isa sse
expect_usage "--isa 'sse'" 'base, avx2, avx512'
attnum_in sse $maps
expect_usage "ATTNUM_ISA 'sse'" 'base, avx2, avx512'
attnum_in sse $maps --isa base --dry-run
expect_exit 0

# ---- a kill at any moment leaves no half-written CSV ----
killed='run convergence/curves --quick --input smooth --samples 2 --sampling pool'
attnum $killed --out never_killed
expect_exit 0
for delay in 0.05 0.1 0.2 0.3 0.5 0.7; do
    command="attnum run convergence/curves, killed after $delay s"
    rm -rf killed
    "$program" $killed --out killed >stdout 2>stderr &
    running=$!
    sleep "$delay"
    kill -KILL "$running" 2>/dev/null
    wait "$running" 2>/dev/null
    [ ! -e killed/convergence/curves.csv ] ||
        cmp -s killed/convergence/curves.csv never_killed/convergence/curves.csv
    check "no CSV, or all of it" $?
done
attnum $killed --out killed --resume
expect_exit 0
cmp -s killed/convergence/curves.csv never_killed/convergence/curves.csv
check "a resumed run gives the bits of an uninterrupted one" $?

# ---- no space on the disk ----
command='attnum run with a file size limit of some KiB'
(
    ulimit -f 4 # clang's OpenMP library writes 1 KiB before main
    exec "$program" run spectral/eigenvalues --quick --input smooth --out full >stdout 2>stderr
)
code=$?
expect_exit 3
expect_stderr 'full'
expect_no_file full/spectral/eigenvalues.csv

finish
