#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_machine.sh PROGRAM: what the program finds at its start (descriptors, limits, signals) and in its
# folders (links, pipes, other runs) does no harm. failures.py has what fails while it runs.
set -u
. "$(dirname "$0")/checks.sh"
growth='run spectral/norm-growth --quick --input smooth --samples 1 --m 4,9,16 --threads 2'
attnum $growth --out whole
expect_exit 0

# same NAME FILE FILE: two files are the same.
same() {
    cmp -s "$2" "$3"
    check "$1" $?
}
# within SECONDS WORDS...: the program, which must not wait for ever.
within() {
    command="attnum $2 ..."
    seconds=$1
    shift
    timeout -k 1 "$seconds" "$program" "$@" >stdout 2>stderr </dev/null
    code=$?
}

# ---- descriptors that are closed ----
for i in 1 2; do
    command="attnum run --shard $i/2, no descriptors"
    "$program" $growth --shard "$i/2" --out shards 0<&- 1>&- 2>&-
    code=$?
    expect_exit 0
done
attnum merge shards --out merged
expect_exit 0
same 'shards written without a stdout are whole' whole/spectral/norm_growth.csv merged/spectral/norm_growth.csv

# ---- limits ----
command='attnum with a stack of 64 KiB'
(
    ulimit -s 64
    exec "$program" $growth --out small >stdout 2>stderr
)
code=$?
expect_exit 3
expect_one_error 'the stack is limited to 64 KiB'
# LLVM's OpenMP runtime ends the process by a signal where it lacks a file or a thread.
if ! ldd "$program" | grep -q libomp; then
    command='attnum check --emit-case with a file size limit of 1 KiB'
    (
        ulimit -f 1
        exec "$program" check --emit-case limited --operator sima/paper >stdout 2>stderr
    )
    code=$?
    expect_exit 3
    expect_one_error limited/sima-paper/
    [ -z "$(find limited -name '.*.tmp')" ]
    check 'no temporary file stays' $?
    command='attnum run, threads with a stack of 1 TiB'
    OMP_STACKSIZE=1000G "$program" $growth --out huge >stdout 2>stderr
    code=$?
    expect_exit 3
    expect_stderr 'attnum: ended by a library that lacks threads or memory'
fi
command='attnum run, two threads on a full disk'
(
    ulimit -f 4
    exec "$program" run spectral/norm-growth --quick --input smooth --samples 8 --threads 2 --out full >stdout 2>stderr
)
code=$?
expect_exit 3
expect_one_error 'norm_growth.journal: cannot write'

# ---- links and pipes where a file is to be ----
mkdir -p linked/spectral
echo precious >precious
for name in norm_growth.csv norm_growth.csv-metadata.json norm_growth_fit.csv; do
    ln -s ../../precious "linked/spectral/.$name.tmp"
done
attnum $growth --out linked
expect_exit 0
[ "$(cat precious)" = precious ] && [ -z "$(find linked -type l)" ]
check 'a link under a temporary name is not followed, nor published' $?
same 'the CSV is there' whole/spectral/norm_growth.csv linked/spectral/norm_growth.csv
ln precious linked/spectral/.norm_growth.csv.tmp
attnum $growth --out linked
[ "$(cat precious)" = precious ]
check 'nor is one of another kind' $?
ln -s ../../precious linked/spectral/norm_growth.journal
attnum $growth --out linked
expect_exit 3
expect_one_error norm_growth.journal
[ "$(cat precious)" = precious ]
check 'a link in place of a journal is not followed' $?
mkdir -p piped/spectral
mkfifo piped/spectral/.norm_growth.csv.tmp pipe
within 20 $growth --out piped
expect_exit 0
same 'a pipe under a temporary name goes' whole/spectral/norm_growth.csv piped/spectral/norm_growth.csv
within 20 regress pipe --against pipe
expect_exit 3
expect_one_error 'pipe: not a regular file'
within 20 inspect pipe.npy
mv pipe pipe.npy
within 20 inspect pipe.npy
expect_exit 3
expect_one_error 'pipe.npy: not a regular file'
mkdir -p data/images data/plots
mkfifo data/images/SHA256SUMS
command='attnum inspect photos, SHA256SUMS a pipe'
ATTNUM_DATADIR=data timeout -k 1 20 "$program" inspect photos >stdout 2>stderr
code=$?
expect_exit 3
expect_one_error 'SHA256SUMS: not a regular file'
cp -r whole odd
rm odd/spectral/norm_growth.csv-metadata.json
mkfifo odd/spectral/norm_growth.csv-metadata.json
within 20 $growth --out odd --resume
expect_exit 0
[ -f odd/spectral/norm_growth.csv-metadata.json ]
check 'a pipe in place of metadata is none' $?

# ---- metadata that are not ours ----
sed -i 's/"exit_code":.*/"exit_code":\t12/' odd/spectral/norm_growth_fit.csv-metadata.json
within 20 $growth --out odd --resume
expect_exit 0
grep -q '"exit_code":.*0' odd/spectral/norm_growth_fit.csv-metadata.json
check 'an exit code that no run has is not believed' $?

# ---- two at one place ----
within 60 inspect smooth --quick --html page.html --out one &
first=$!
within 60 inspect smooth --quick --html page.html --out two
second=$code
wait $first
[ "$second" -eq 0 ] || { [ "$second" -eq 3 ] && grep -q 'page.html: another run is writing here' stderr; }
check "the second run ends with 0, or says that there is a first ($second)" $?
[ "$(tail -c 8 page.html)" = '</html>' ]
check 'the page is whole' $?

# ---- signals ----
# SIGHUP as a terminal leaves it: under nohup it would be ignored, and so by the program.
# runs: the processes of claims' runs. left: how many go on, and how many folders there are.
runs() {
    grep -l "$folder/tmp/attnum-claim[s]" /proc/[0-9]*/cmdline 2>/dev/null | cut -d / -f 3 # not this grep
}
left() {
    runs | wc -l
    ls tmp | wc -l
}
mkdir tmp
for signal in HUP INT TERM KILL; do
    command="attnum claims, SIG$signal"
    TMPDIR=$folder/tmp setsid env --default-signal=HUP "$program" claims S06 >stdout 2>stderr &
    running=$!
    for _ in $(seq 100); do
        [ -z "$(ls tmp/*/*/log.txt 2>/dev/null)" ] || break
        sleep 0.05
    done
    [ -n "$(ls tmp)" ]
    check 'it is at work' $?
    stopped=
    # A stopped run cannot end by itself. Its log exists before its command line names the folder.
    if [ $signal = KILL ]; then
        for _ in $(seq 100); do
            stopped=$(runs)
            [ -z "$stopped" ] || break
            sleep 0.05
        done
        [ -z "$stopped" ] || kill -STOP $stopped
    fi
    kill -$signal $running
    wait $running 2>/dev/null
    for _ in $(seq 100); do
        [ "$(left | tr '\n' ' ')" != '0 0 ' ] || break
        sleep 0.1
    done
    [ "$(left | tr '\n' ' ')" = '0 0 ' ]
    check 'no run goes on, and its folder is gone' $?
    [ $signal != KILL ] || [ -n "$stopped" ]
    check 'there was a run' $?
    [ -z "$stopped" ] || kill -KILL $stopped 2>/dev/null
done
for signal in HUP TERM; do
    rm -rf ended
    command="attnum run, SIG$signal"
    # with a thread for every point, all of them could end after the signal
    env --default-signal=HUP "$program" run spectral/eigenvalues --threads 1 --out ended >stdout 2>stderr &
    running=$!
    for _ in $(seq 400); do
        [ ! -s ended/spectral/eigenvalues.journal ] || break
        sleep 0.05
    done
    kill -$signal $running
    wait $running
    code=$?
    expect_exit 3
    expect_stderr 'the same command with --resume goes on'
done
# Libraries end the program by SIGABRT.
attnum check --emit-case aborted --operator sima/paper --n 1600 --d 32 # inspect takes seconds
command='attnum inspect --html, SIGABRT'
"$program" inspect aborted/sima-paper/tokens.npy --html aborted/page.html >stdout 2>stderr &
running=$!
for _ in $(seq 400); do
    [ ! -e aborted/.page.html.tmp ] || break
    sleep 0.01
done
[ -e aborted/.page.html.tmp ]
check 'it is at work' $?
kill -ABRT $running
wait $running 2>/dev/null
[ -z "$(find aborted -name '*page.html*')" ]
check 'no page stays, whole or not' $?

# ---- many rows ----
head -n 1 "$2/data/golden/accuracy.csv" >rows.csv
awk -F, 'NR == 2 { for (i = 1; i <= 40000; i++) { $5 = i; $4 = "cpu"; print } }' OFS=, "$2/data/golden/accuracy.csv" |
    sed 's/,pass$/,marginal/' >>rows.csv
start=$(date +%s)
within 60 regress rows.csv --against rows.csv
expect_exit 0
echo "40000 rows took $(($(date +%s) - start)) s"

finish
