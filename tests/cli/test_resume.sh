#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_resume.sh PROGRAM: runs killed (kill -9) at 20 random moments, of their points, their files
# and their plots, and resumed each time, give the CSVs of an undisturbed one, and no point whose
# record was whole runs again. The moments are drawn from RESUME_SEED, printed below.
set -u
. "$(dirname "$0")/checks.sh"
seed=${RESUME_SEED:-$(($(date +%s) % 100000))}
echo "RESUME_SEED=$seed"
kills=20

# Three CSVs, one from another, and plots.
experiment='convergence/curves spectral/norm-growth'
options='--quick --input smooth --samples 2 --sampling pool --threads 2'
journals='convergence/curves.journal spectral/norm_growth.journal'

# heads FILE: the points whose records the journal holds, one a line; the last may be torn.
heads() {
    if [ -f "$1" ]; then grep -a '^point [0-9]* code [0-9]* rows ' "$1" | cut -d ' ' -f 2; fi
}
# keep FOLDER: what each journal holds, so that none of it may change or come again.
keep() {
    for journal in $journals; do
        rm -f "kept_$(basename "$journal")"
        [ ! -f "$1/$journal" ] || cp "$1/$journal" "kept_$(basename "$journal")"
    done
}
# whole_bytes FILE: the bytes before the last record, which may be torn.
whole_bytes() {
    grep -abo '^point [0-9]* code [0-9]* rows ' "$1" | tail -n 1 | cut -d : -f 1
}
# held FOLDER: after a kill, of what was kept nothing changed, and no point is there twice.
held() {
    for journal in $journals; do
        before=kept_$(basename "$journal")
        [ -f "$1/$journal" ] || continue
        [ -z "$(heads "$1/$journal" | sort | uniq -d)" ]
        check "no point twice in $journal" $?
        [ -f "$before" ] || continue
        bytes=$(whole_bytes "$before")
        [ "${bytes:-0}" -eq 0 ] || cmp -s -n "$bytes" "$before" "$1/$journal"
        check "what was whole in $journal is there still (${bytes:-0} bytes)" $?
    done
}
# resumed: the run says that it found at least all records but the last, of the first journal.
resumed() {
    for journal in $journals; do
        before=kept_$(basename "$journal")
        [ -f "$before" ] || continue
        there=$(heads "$before" | wc -l)
        case $journal in
        convergence/*) name=convergence/curves ;;
        *) name=spectral/norm-growth ;;
        esac
        said=$(sed -n "s|.*note: $name: \([0-9]*\) of [0-9]* points are there already|\1|p" stderr)
        [ -z "$said" ] || { [ "$said" -le "$there" ] && [ "$said" -ge $((there - 1)) ]; }
        check "$journal: $there records, ${said:-not said} taken" $?
    done
}

start=$(date +%s%N)
attnum run $experiment $options --out whole
expect_exit 0
expect_quiet
length=$((($(date +%s%N) - start) / 1000000))
echo "an undisturbed run takes $length ms"

# Early ones more often, so that some runs are killed several times.
moments=$(awk -v seed="$seed" -v kills=$kills -v length_ms=$length 'BEGIN {
    srand(seed)
    for (i = 0; i < kills; i++) { part = rand(); printf "%.3f ", length_ms / 1000 * part * part }
}')
finished=0
resume=
keep killed
for moment in $moments; do
    command="attnum run, killed after $moment s"
    "$program" run $experiment $options --out killed $resume >stdout 2>stderr </dev/null &
    running=$!
    sleep "$moment"
    kill -KILL "$running" 2>/dev/null
    wait "$running" 2>/dev/null
    code=$?
    resumed
    if [ "$code" -eq 137 ]; then
        held killed
        resume=--resume
        keep killed
        for csv in $(cd killed 2>/dev/null && find . -name '*.csv'); do
            cmp -s "whole/$csv" "killed/$csv"
            check "no $csv, or all of it" $?
        done
    else
        expect_exit 0
        finished=$((finished + 1))
        diff -rq whole killed >differing
        [ "$(grep -vc 'metadata.json' differing)" -eq 0 ]
        check "the files of an undisturbed run" $?
        rm -rf killed
        resume=
        keep killed
    fi
done
attnum run $experiment $options --out killed $resume
expect_exit 0
resumed
diff -rq whole killed >differing
[ "$(grep -vc 'metadata.json' differing)" -eq 0 ]
check "the files of an undisturbed run, plots too, and nothing else" $?
cat differing
echo "$kills moments, $finished runs came to their end before"
attnum run $experiment $options --out killed --resume
expect_exit 0
[ "$(grep -c 'already complete' stderr)" -eq 2 ]
check "it is complete" $?

# ---- a shard's journal stays: each point is there once, however often it was killed ----
rm -rf shard
journals=spectral/norm_growth.shard-1-of-1
keep shard
for moment in 0.05 0.1 0.15 0.1 0.05; do
    command="attnum run --shard 1/1, killed after $moment s"
    timeout -s KILL "$moment" "$program" run spectral/norm-growth $options \
        --shard 1/1 --out shard --resume >stdout 2>stderr </dev/null
    held shard
    keep shard
done
attnum run spectral/norm-growth $options --shard 1/1 --out shard --resume
expect_exit 0
held shard
[ "$(heads shard/$journals | sort -n | tr '\n' ' ')" = \
    "$(seq 0 $(($(heads shard/$journals | wc -l) - 1)) | tr '\n' ' ')" ]
check "all points, once" $?
attnum merge shard --out merged
expect_exit 0
for csv in norm_growth norm_growth_fit; do
    cmp -s whole/spectral/$csv.csv merged/spectral/$csv.csv
    check "$csv.csv of the shard is that of the run" $?
done

finish
