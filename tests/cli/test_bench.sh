#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_bench.sh PROGRAM EMULATED SOURCE: attnum bench, on the CPU and on the emulated device, and
# scripts/gpu-evidence from end to end on that device.
set -u
build=$(realpath "$(dirname "$1")/..")
emulated=$(realpath "$2")
source=$(realpath "$3")
. "$(dirname "$0")/checks.sh"

# ---- mistakes ----
attnum bench soft
expect_usage "'soft'" 'operators, inverses, kernel, gemm, exp, training, memory'
attnum bench gemm gemm
expect_usage "'gemm'" 'twice'
attnum bench gemm --threads 0
expect_usage "--threads '0'" '1..1024'
attnum bench --dtype f16
expect_usage '--dtype f16' '--device cuda'
attnum bench operators gemm --dtype bf16
expect_usage '--dtype bf16' 'not for gemm'
attnum bench --operator softmax,xnorm --dtype bf16
expect_usage '--dtype bf16' 'not for xnorm,' 'cpu-bf16'
attnum bench --variant chebyshev-2 --dtype bf16
expect_usage '--dtype bf16' '--variant'
attnum run accuracy/operators --dtype f16
expect_usage '--dtype f16' '--device cuda'
attnum bench --input photos
expect_usage '--input'
attnum bench memory --quick --dtype f64 --out none
expect_usage '--dtype: not for memory' 'operators, inverses, kernel, gemm, exp, training'
attnum bench gemm exp --quick --batch 2 --out none
expect_usage '--batch: not for gemm and the others' 'it is for operators, inverses'
attnum bench training --quick --n 100 --out none
expect_usage '--n: not for training'
attnum bench training --quick --dtype f64 --out none
expect_exit 2
expect_stderr 'training is in f32'
attnum bench --quick --operator soft --n 48 --out none
expect_exit 2
expect_stderr 'nothing to time'
attnum bench gemm --emit-tokens none
expect_usage '--emit-tokens' 'no operator'
expect_no_file none
attnum bench --help
expect_exit 0
expect_stdout '--emit-tokens FOLDER'
expect_stdout '--threads LIST'

# ---- the tests' machines have no GPU: it says so, and writes nothing ----
attnum list devices --format csv
expect_exit 0
expect_stdout 'devices,cpu,cpu'
if grep -q '^devices,cuda,none,' stdout; then
    attnum bench --device cuda --out none
    expect_exit 3
    expect_one_error '--device cuda'
    expect_no_file none
    command='gpu-evidence without a device'
    ATTNUM=$program "$source/scripts/gpu-evidence" --out none >stdout 2>stderr
    code=$?
    expect_exit 77
    expect_stdout 'nothing is written'
    [ -z "$(ls none 2>/dev/null)" ]
    check "nothing is written" $?
fi

# ---- on the CPU ----
small='--quick --operator sima --n 32 --batch 1 --dtype f32'
attnum bench $small --out cpu --threads 1
expect_exit 0
expect_quiet
expect_stdout 'backward'
[ "$(wc -l <cpu/bench.csv)" -eq 8 ]
check "a row for each rate and direction" $?
[ "$(grep -c '^exponentials,' cpu/bench.csv)" -eq 2 ]
check "two of them exponentials" $?
grep -q '^backward / forward,backward,sima,' cpu/bench_ratios.csv
check "backward next to forward" $?
attnum bench gemm exp kernel --quick --n 40 --m 9 --dtype f32 --threads 1,2 --out parts
expect_exit 0
for work in gemm kernel exp; do
    grep -q "^$work,.*,hot,.*,pass," parts/bench.csv
    check "rows of $work" $?
done
! grep -q '^forward,' parts/bench.csv
check "no operators" $?
for quantity in 'openblas / attnum,gemm,AB' 'libm / direct,kernel' 'libm / attnum,exp' 'threads 1 / 2,exp'; do
    grep -q "^$quantity," parts/bench_ratios.csv
    check "ratios $quantity" $?
done
attnum bench training --quick --operator sima --threads 1 --out training
expect_exit 0
grep -q '^training,sima,paper,.*,open,' training/bench.csv
check "a step of training" $?
attnum bench --quick --variant pivoted-cholesky --m 9 --batch 1,3 --dtype f32 --threads 1,2 --out solve
expect_exit 0
[ "$(grep -c '^newton-openblas / pivoted-cholesky,solve,' solve/bench_ratios.csv)" -eq 3 ]
check "the published steps next to a factor: of one matrix, of three on 1 and 2 threads" $?
attnum bench gemm exp --quick --m 9 --dtype f32 --threads 1 --out whole --dry-run
expect_exit 0
expect_stdout 'gemm AB' 'exp libm'

# ---- in parts, with what is timed ----
for shard in 1 2; do
    attnum bench exp --quick --dtype f32 --threads 1 --shard $shard/2 --out "shard$shard"
    expect_exit 0
done
attnum merge shard1 shard2 --out merged
expect_exit 0
[ "$(grep -c '^exp,' merged/bench.csv)" -eq 2 ]
check "shards have the words too" $?

# ---- growth ----
attnum bench memory --quick --operator sima,gaussian --n 784,1568 --threads 1,2 --out growth
expect_exit 0
expect_quiet
[ "$(grep -c '^sima,paper,,n,' growth/bench_growth.csv)" -eq 4 ] && [ "$(wc -l <growth/bench_growth.csv)" -eq 5 ]
check "a row for each n and number of threads, none of what is quadratic" $?
grep -q '^sima,paper,,2,n,bytes_workspace,2,784,1568,' growth/bench_growth_fits.csv
check "a line for its memory" $?
for shard in 1 2; do
    attnum bench memory --quick --operator sima --n 784,1568 --threads 1 --shard $shard/2 --out "part$shard"
    expect_exit 0
done
attnum merge part1 part2 --out joined
expect_exit 0
[ "$(grep -c '^sima,' joined/bench_growth.csv)" -eq 2 ] && [ "$(grep -c '^sima,' joined/bench_growth_fits.csv)" -ge 3 ] # sanitisers leave out a measured one
check "from shards, with the fits" $?
attnum bench memory --quick --operator sima --n 1568,784 --threads 1 --out falling
expect_exit 0
grep -q '^sima,paper,,1,n,bytes_workspace,2,784,1568,' falling/bench_growth_fits.csv
check "a falling list of n is fitted as a rising one" $?
attnum bench memory more
expect_usage "'more'"

# ---- on the emulated device: the same rows, with the device's name ----
program=$emulated
attnum list devices --format csv
expect_stdout 'devices,cuda,emulated,'
attnum bench memory --device cuda --operator sima
expect_exit 2
expect_stderr '--device cuda: expected cpu'
attnum bench $small --device cuda --out cuda
expect_exit 0
expect_quiet
for csv in bench.csv bench_ratios.csv; do
    [ "$(head -n 1 cpu/$csv)" = "$(head -n 1 cuda/$csv)" ]
    check "$csv: the same columns" $?
    [ "$(cut -d, -f1-12 cpu/$csv | sed 's/,[^,]*e-.*//')" != '' ]
    check "$csv has rows" $?
done
[ "$(grep -c ',cuda,emulated,90,' cuda/bench.csv)" -eq 5 ]
check "rows name the device and its capability" $?
[ "$(grep -c ',pass,' cuda/bench.csv)" -eq 2 ]
check "both directions are checked" $?
grep -q '"name":.*"emulated"' cuda/bench.csv-metadata.json
check "so do the metadata" $?
attnum bench $small --emit-tokens tokens
expect_exit 0
for input in q k v; do
    [ -s "tokens/tokens_b1_h2_n32_d32_$input.npy" ]
    check "tokens as the PyTorch peers read them: $input" $?
done

# ---- bf16 on the CPU: the operators that have it, forward, next to f32 ----
attnum bench --quick --n 64 --m 4 --batch 1 --threads 1 --dtype f32,bf16 --out narrow
expect_exit 0
[ "$(grep ',bf16,' narrow/bench.csv | cut -d, -f1,2 | uniq | tr '\n' ' ')" = \
    'forward,soft forward,softpp forward,softmax forward,sima ' ]
check "these operators alone, forward alone" $?
[ "$(grep '^bf16 / f32,forward,' narrow/bench_ratios.csv | cut -d, -f3 | uniq | wc -l)" -eq 4 ] && ! grep ',bf16,' narrow/bench.csv | grep -qv ',pass,'
check "they pass, next to f32" $?

attnum bench --quick --device cuda --operator soft --n 64 --m 4 --batch 1 --dtype bf16 --out passes
expect_exit 0
for passes in tiles fused chain; do
    grep -q "^forward,soft,paper,nr-paper,$passes,clamped,bf16," passes/bench.csv
    check "a row for the passes as $passes" $?
done
grep -q '^chain / fused,forward,soft,' passes/bench_ratios.csv
check "the chain next to the fused passes" $?
attnum bench --quick --device cuda --variant chebyshev-2,nr-paper --m 8 --batch 3 --dtype f32 --out inverses
expect_exit 0
[ "$(grep -c '^inverse,.*,pass,' inverses/bench.csv)" -eq 2 ]
check "batches of inverses" $?

# ---- everything, on that device ----
command='gpu-evidence'
cat >passes_tests <<'SH'
#!/bin/sh
echo 'Tested: 1 | Passing: 1 | Failing: 0 | Crashing: 0'
SH
chmod +x passes_tests
echo 'Test(a, b)' >one_test.c
ATTNUM=$emulated ATTNUM_GPU_TESTS=$PWD/passes_tests ATTNUM_GPU_SOURCES=$PWD/one_test.c \
    "$source/scripts/gpu-evidence" --out evidence --experiments spectral/eigenvalues \
    --bench "$small" --limit 300 >stdout 2>stderr
code=$?
expect_exit 0
for file in summary.csv versions.json bench.csv bench_ratios.csv differences.csv bench.log; do
    [ -s "evidence/emulated/$file" ]
    check "$file is there" $?
done
for part in suite bench compare; do
    grep -q "^$part,[^,]*,passed," evidence/emulated/summary.csv
    check "part $part passed" $?
done
[ "$(find evidence -mindepth 1 -maxdepth 1 | wc -l)" -eq 1 ]
check "nothing else is left" $?
! grep -rq "$folder" evidence
check "no path of this machine in it" $?
if command -v python3 >/dev/null; then
    python3 -m json.tool evidence/emulated/versions.json >parsed 2>&1
    check "versions.json is JSON" $?
fi

# ---- some parts, each in an archive of its own, the most valuable first ----
command='gpu-evidence --parts bench,probe --archive'
ATTNUM=$emulated ATTNUM_GPU_TESTS=$PWD/passes_tests ATTNUM_GPU_SOURCES=$PWD/one_test.c \
    "$source/scripts/gpu-evidence" --parts bench,probe --archive archives --out parts_evidence \
    --bench "$small" --limit 300 >stdout 2>stderr
code=$?
expect_exit 0
[ "$(sed 's/,.*//' parts_evidence/emulated/summary.csv | tr '\n' ' ')" = 'part machine passes bench ' ]
check "these parts alone, in the order of their value" $?
[ "$(cd archives && echo *)" = 'bench.tar.gz probe.tar.gz' ]
check "an archive for each" $?
[ "$(tar -tzf archives/probe.tar.gz | tr '\n' ' ')" = 'machine.log passes.log summary.csv versions.json ' ]
check "the first has what it left" $?
mkdir unpacked
tar -C unpacked -xzf archives/bench.tar.gz
cmp -s unpacked/bench.csv parts_evidence/emulated/bench.csv && [ ! -e unpacked/machine.log ]
check "the second has its results and nothing of the first's" $?
command='gpu-evidence --parts that adds to what is there'
ATTNUM=$emulated ATTNUM_GPU_TESTS=$PWD/passes_tests ATTNUM_GPU_SOURCES=$PWD/one_test.c \
    "$source/scripts/gpu-evidence" --parts suite --out parts_evidence >stdout 2>stderr
code=$?
expect_exit 0
[ "$(sed 's/,.*//' parts_evidence/emulated/summary.csv | tr '\n' ' ')" = 'part machine passes bench suite ' ]
check "a part that runs later is added" $?
command='gpu-evidence --parts nonsense'
ATTNUM=$emulated "$source/scripts/gpu-evidence" --parts probe,nonsense --out nonsense >stdout 2>stderr
code=$?
expect_exit 2
expect_stderr "'nonsense' is none of probe headline"
expect_no_file nonsense

# ---- on another machine: the libraries carried along ----
command='gpu-evidence --carry'
"$source/scripts/gpu-evidence" --build "$build" --carry carried >stdout 2>stderr
code=$?
expect_exit 0
expect_stdout 'must be on the machine:'
[ "$(find carried -type f)" = carried/carried.tar.xz ]
check "one archive" $?
command='gpu-evidence --use'
ATTNUM=$emulated ATTNUM_GPU_TESTS=$PWD/passes_tests ATTNUM_GPU_SOURCES=$PWD/one_test.c \
    "$source/scripts/gpu-evidence" --use carried --out there --experiments none \
    --bench "$small" >stdout 2>stderr
code=$?
expect_exit 0
[ -s there/emulated/bench.csv ]
check "runs from the archive" $?

# ---- a part that fails or hangs stops no other ----
command='gpu-evidence with a part that hangs and one that fails'
printf '#!/bin/sh\nsleep 60\n' >passes_tests
ATTNUM=$emulated ATTNUM_GPU_TESTS=$PWD/passes_tests ATTNUM_GPU_SOURCES=$PWD/one_test.c \
    "$source/scripts/gpu-evidence" --out evidence --experiments none \
    --bench '--operator none' --limit 3 >stdout 2>stderr
code=$?
expect_exit 1
grep -q '^suite,[^,]*,out of time,' evidence/emulated/summary.csv
check "the suite ran out of time" $?
grep -q '^bench,[^,]*,failed,' evidence/emulated/summary.csv
check "the benchmark failed" $?

command='gpu-table'
python3 "$source/scripts/gpu-table" --check
check "README's table is what the files give" $?
command='performance-table'
python3 "$source/scripts/performance-table" --check
check "so is its table of times" $?

finish
