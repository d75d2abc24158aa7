#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_shards.sh PROGRAM SOURCE: runs in shards, attnum merge, and scripts/sweep.slurm.
set -u
source=$(realpath "$2")
unset ATTNUM_ISA # commands would repeat it
. "$(dirname "$0")/checks.sh"

# same_csvs A B: the CSVs of folder A are in folder B too, byte by byte.
same_csvs() {
    for csv in $(cd "$1" && find . -name '*.csv'); do
        cmp -s "$1/$csv" "$2/$csv"
        check "$csv of $2 is that of $1" $?
    done
    [ "$(find "$1" -type f | sed "s|^$1||" | sort)" = "$(find "$2" -type f | sed "s|^$2||" | sort)" ]
    check "$2 has the files of $1" $?
}

# ---- several experiments in 1, 2, 3 and 7 shards; norm-growth has 6 points ----
several='run spectral/norm-growth spectral/bounds networks/counts --quick --input smooth --m 4,16,49 --sampling pool'
attnum $several --out whole
expect_exit 0
attnum run spectral/norm-growth --quick --input smooth --m 4,16,49 --sampling pool --dry-run
points=$(tail -n 1 stdout | sed 's/.*: \([0-9]*\) points/\1/')
[ "$points" -lt 7 ]
check "fewer than 7 points, $points" $?
for shards in 1 2 3 7; do
    for shard in $(seq "$shards"); do
        attnum $several --shard "$shard/$shards" --out "parts$shards/node$((shard % 2))" --threads 1
        expect_exit 0
        expect_quiet
    done
    [ -z "$(find "parts$shards" -type f ! -name "*.shard-*-of-$shards")" ]
    check "shards leave nothing but shards" $?
    attnum merge "parts$shards/node0" "parts$shards/node1" --out "merged$shards"
    [ "$shards" -gt 1 ] || attnum merge "parts$shards" --out "merged$shards"
    expect_exit 0
    expect_quiet
    same_csvs whole "merged$shards"
done
mkdir -p parts3/node0/.hidden
echo damaged | tee parts3/node0/.hidden/norm_growth.shard-1-of-3 >parts3/node0/norm_growth.shard-1-of-3.old
attnum merge parts3 --out beside
expect_exit 0
expect_quiet
same_csvs whole beside
rm -r parts3/node0/.hidden parts3/node0/norm_growth.shard-1-of-3.old
attnum $several --out merged3 --resume
expect_exit 0
[ "$(grep -c 'already complete' stderr)" -eq 3 ]
check "a merged run is complete" $?

# ---- each point is in one shard ----
for shard in 1 2 3; do
    attnum run spectral/norm-growth --quick --input smooth --m 4,16,49 --sampling pool --shard $shard/3 --dry-run
    sed '1d;$d' stdout >>dealt
done
attnum run spectral/norm-growth --quick --input smooth --m 4,16,49 --sampling pool --dry-run
sed '1d;$d' stdout | sort >all
sort dealt | cmp -s - all
check "3 shards have all points once" $?

# ---- what is missing is named, with the command that makes it ----
cp -r parts3 holes
rm holes/node0/spectral/norm_growth.shard-2-of-3
attnum merge holes --out holed
expect_exit 3
expect_one_error 'spectral/norm-growth: shard 2 of 3 is missing' \
    'attnum run spectral/norm-growth --quick --input=smooth --m=4,16,49 --sampling=pool --shard 2/3 --out holes --resume'
expect_no_file holed/spectral/norm_growth.csv
[ -s holed/spectral/bounds.csv ]
check "the other experiments are merged" $?
attnum $(sed 's/.*leaves: attnum //' stderr)
expect_exit 0
attnum merge holes --out holed
expect_exit 0
same_csvs whole holed
# of an experiment that ran with others, those of the options that it takes
cp -r parts3 lacks
rm lacks/node1/networks/counts.shard-1-of-3
attnum merge lacks --out lacked
expect_exit 3
expect_one_error 'attnum run networks/counts --quick'
! grep -q -e --input -e --sampling stderr
check "no option that networks/counts does not take" $?
attnum $(sed 's/.*leaves: attnum //' stderr)
expect_exit 0
attnum merge lacks --out lacked
expect_exit 0
same_csvs whole lacked
cp -r parts3 gaps
mkdir gap
mv gaps/node1/spectral/norm_growth.shard-1-of-3 gap
rm gaps/node0/spectral/norm_growth.shard-2-of-3
attnum merge gap gaps --out gapped
expect_exit 3
[ -s gapped/spectral/bounds.csv ]
check "a merge that succeeds after one that fails does not hide it" $?
mkdir empty
attnum merge empty
expect_exit 3
expect_one_line
expect_stderr 'no shards here'
attnum merge nowhere
expect_exit 3
expect_one_line
attnum merge
expect_usage 'expected the folders'
attnum merge parts3 --shard 1/2
expect_usage '--shard'
attnum merge parts2 parts3 --out mixed
expect_exit 3
expect_stderr 'is one of another number of shards than'
expect_no_file mixed

# ---- files of tokens: the same bytes elsewhere count, other bytes do not ----
npy() {
    printf '\223NUMPY\001\000v\000'
    printf '%-117s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': (64, 4), }"
    for i in $(seq 32); do
        printf "%.7s$1%.7s\\077" 'abcdefg' "1234567$i"
        printf '%.7s\100%.7s\077' "$i-234567" 'hijklmn'
        printf '%.7s\077%.7s\100' "x${i}yz1234" "A${i}BCDEFG"
        printf '%.7s\077%.7s\077' 'opqrstu' "$i${i}98765432"
    done
}
mkdir here there
npy '\077' >here/tokens.npy
cp here/tokens.npy there/tokens.npy
tokens='run spectral/norm-growth --quick --m 4,16'
attnum $tokens --input here/tokens.npy --out tokens
expect_exit 0
attnum $tokens --input here/tokens.npy --shard 1/2 --out tokens_parts
attnum $tokens --input there/tokens.npy --shard 2/2 --out tokens_parts
expect_exit 0
rm here/tokens.npy # shard 2 knows where it lies
attnum merge tokens_parts --out tokens_merged
expect_exit 0
same_csvs tokens tokens_merged
npy '\100' >there/tokens.npy
attnum merge tokens_parts --out tokens_changed
expect_exit 3
expect_stderr 'another than this program makes of its options'
attnum $tokens --input there/tokens.npy --shard 2/2 --out tokens_parts
attnum merge tokens_parts --out tokens_changed
expect_exit 3
expect_stderr 'was run with other options, version or input than'
expect_no_file tokens_changed
latin=$(printf 'there/t\366kens.npy')
mv there/tokens.npy "$latin"
attnum $tokens --input "$latin" --shard 1/2 --out tokens_latin
expect_exit 2
expect_stderr 'expected UTF-8 with --shard'
expect_no_file tokens_latin
rm "$latin"

# ---- shards that nobody ran: sealed well, and still refused with one line ----
if command -v python3 >/dev/null; then
    cat >forge.py <<'PY'
import json, sys
# forge.py FILE OUT EDIT: the shard with `run`, `first` and `head` changed by EDIT, and new sums
def sealed(head, body, size=None):
    head = f"{head} bytes {len(body) if size is None else size}".encode()
    total = 0xcbf29ce484222325
    for byte in head + body:
        total = (total ^ byte) * 0x100000001b3 % 2**64
    return head + b" sum %016x\n" % total + body
data = open(sys.argv[1], "rb").read()
first, line, text, records = data.split(b"\n", 3)
run, head = json.loads(text), line.rsplit(b" bytes ", 1)[0].decode()
first = first.decode()
exec(sys.argv[3])
text = (json.dumps(run) if not isinstance(run, str) else run).encode() + b"\n"
open(sys.argv[2], "wb").write(first.encode() + b"\n" + sealed(head, text) + records)
PY
    part=spectral/norm_growth.shard-1-of-1
    forge() { # forge EDIT TEXT: refused, with this text
        rm -rf forged
        mkdir -p forged/spectral
        python3 forge.py "parts1/node1/$part" "forged/$part" "$1"
        attnum merge forged --out forged_out
        command="merge of a shard with $1"
        expect_exit "${3:-3}"
        grep -v '^% attnum' stdout >rest
        mv rest stdout
        expect_one_line
        expect_stderr "$2"
        expect_no_file forged_out
    }
    forge 'run["version"] = "9.9"' 'is of version 9.9'
    forge 'run["experiment"] = "made/up"' "is of 'made/up'"
    forge 'run["experiment"] = "spectral/bounds"' '--sampling: not an option here' 2
    forge 'run["experiment"] = "spectral/bounds"; run["options"].remove("--sampling=pool")' 'is another than'
    forge 'run["options"] = 7' 'list of options'
    forge 'run["options"] = [["--quick"]]' 'list of options'
    forge 'run["options"] = ["quick"]' 'list of options'
    forge 'run["options"].append("--nonsense=1")' '--nonsense' 2
    forge 'run["options"].append("--out=elsewhere")' '--out=elsewhere: not an option' 2
    forge 'run["options"].append("--shard=1/1")' '--shard=1/1: not an option' 2
    forge 'run["options"] += ["--seed", "--out=x"]' '--seed: not an option' 2
    expect_no_file elsewhere
    forge 'run["options"].append("--seed=2")' "here 'seed=2'"
    forge 'run = "{" * 100000' 'version'
    forge 'run = "[]"' 'version'
    forge 'head = "shard 1 of 9223372036854775807"' 'cut or edited'
    forge 'head = "shard 1 of 99999999999999999999999"' 'cut or edited'
    forge 'head = "shard 0 of 0"' 'cut or edited'
    forge 'head = "shard 2 of 1"' 'cut or edited'
    forge 'head = "shard 1 of 1000000"' 'is not a point of this shard'
    forge 'records = b""' 'shard 1 of 1 is not finished'
    forge 'records = records + b"x"' 'cut or edited, or is still being written'
    torn='cut or edited, or is still being written'
    forge 'records = sealed("point 0 code 0 rows 0", b"")' 'shard 1 of 1 is not finished'
    for record in '"point 0 code 3 rows 0", b""' '"point 0 code -1 rows 0", b""' \
        '"point 6 code 0 rows 0", b""' '"point -1 code 0 rows 0", b""' \
        '"point 0 code 0 rows 1", b""' '"point 0 code 0 rows 0", b"1,2\n"' \
        '"point 0 code 0 rows 0", b"\0"' '"point 0 code 0 rows 0", b"", 2**64 - 1' \
        '"point 0 code 0 rows 0", b"", 2**70' '"point 0 code 0 rows 99999999999999999", b""'; do
        forge "records = sealed($record)" "$torn"
    done
    forge 'first = first.replace("points=", "points=1")' 'is another than'
    forge 'first = first.replace("journal 3", "journal 2")' 'does not start'
    mkfifo forged/pipe.shard-1-of-1
    attnum merge forged
    expect_exit 3
    expect_one_line

    # ---- what a shard's JSON lacks is not missed where the fingerprint has it ----
    rm -r forged
    mkdir -p forged/spectral
    part=spectral/norm_growth.shard-1-of-1
    python3 forge.py "parts1/node1/$part" "forged/$part" 'del run["seeds"]'
    attnum merge forged --out forged_out
    expect_exit 0
    cmp -s whole/spectral/norm_growth.csv forged_out/spectral/norm_growth.csv
    check "a merge without the seeds of its shards" $?

    # ---- shards of two instruction sets are joined, with a word about it ----
    cp -r parts2 sets
    part=sets/node0/spectral/norm_growth.shard-2-of-2
    python3 forge.py $part forged_part 'run["isa"] = "another"'
    mv forged_part $part
    attnum merge sets/node0 sets/node1 --out sets_merged
    expect_exit 0
    expect_stderr 'note: spectral/norm-growth: shards ran with different instruction sets'
    python3 forge.py parts2/node0/spectral/norm_growth.shard-2-of-2 sets/node0/spectral/norm_growth.shard-2-of-2 \
        'run["blas"]["core"] = "another"'
    attnum merge sets/node0 sets/node1 --out sets_merged
    expect_exit 0
    expect_stderr 'note: spectral/norm-growth: shards ran with different BLAS kernels'
    attnum merge sets/node0 sets/node1 --out sets_merged --format csv
    expect_exit 0
    expect_stderr 'shards ran with different BLAS kernels'
    attnum merge parts2/node0 parts2/node1 --out sets_merged
    expect_exit 0
    expect_quiet

    # ---- a folder that is given twice changes nothing, and the metadata have each shard once ----
    attnum merge parts2/node0 parts2/node1 parts2 --out twice
    expect_exit 0
    same_csvs sets_merged twice
    python3 -c 'import json; print(*(s["shard"] for s in json.load(open(
        "twice/spectral/norm_growth.csv-metadata.json"))["run"]["shards"]))' >stdout
    expect_stdout '2/2 1/2'
    [ "$(wc -w <stdout)" -eq 2 ]
    check "each shard once" $?

    # ---- a journal goes on with its own kernels alone, on any processor ----
    bounds='run spectral/bounds --quick --input smooth --m 4'
    mkdir -p stopped/spectral/bounds.csv # so that the journal stays
    attnum $bounds --out stopped
    expect_exit 3
    rmdir stopped/spectral/bounds.csv
    mv stopped/spectral/bounds.journal journal
    for edit in 'run["isa"] = "another"' 'run["blas"]["core"] = "another"' 'del run["isa"]'; do
        python3 forge.py journal stopped/spectral/bounds.journal "$edit"
        attnum $bounds --out stopped --resume
        expect_exit 2
        expect_one_error ', so that results differ; go on where that is the same, or leave out --resume'
        expect_no_file stopped/spectral/bounds.csv
    done
    python3 forge.py journal stopped/spectral/bounds.journal 'first = first.replace("journal 3", "journal 2")'
    attnum $bounds --out stopped --resume
    expect_exit 2
    expect_stderr 'it does not start as one of this version does'
    python3 forge.py journal stopped/spectral/bounds.journal 'run["cpu"] = "another"'
    attnum $bounds --out stopped --resume
    expect_exit 0
    expect_stderr 'are there already'

    # ---- times of two machines do not go into one table, nor into one journal ----
    sizes='--quick --operator sima --n 32 --batch 1 --dtype f32 --threads 1'
    mkdir -p killed/bench.csv # so that the journal stays
    attnum bench $sizes --out killed
    expect_exit 3
    rmdir killed/bench.csv
    cp killed/bench.journal journal
    for part in cpu isa gpu blas; do
        python3 forge.py journal killed/bench.journal "run[\"$part\"] = \"another\""
        attnum bench $sizes --out killed --resume
        expect_exit 2
        expect_stderr ' "another", here '
        expect_no_file killed/bench.csv
    done
    cp journal killed/bench.journal
    attnum bench $sizes --out killed --resume
    expect_exit 0
    expect_stderr '2 of 2 points are there already' # the rates, and both directions
    for shard in 1 2; do
        attnum bench $sizes --shard $shard/2 --out times
        expect_exit 0
    done
    attnum merge times --out times_merged
    expect_exit 0
    [ "$(grep -c ',sima,' times_merged/bench.csv)" -eq 2 ]
    check "both directions are timed" $?
    cp times/bench.shard-2-of-2 own
    for part in cpu isa gpu; do
        python3 forge.py own times/bench.shard-2-of-2 "run[\"$part\"] = \"another\""
        attnum bench $sizes --shard 2/2 --out times --resume
        expect_exit 2
        expect_stderr ' "another", here '
        attnum merge times --out times_mixed
        expect_exit 3
        expect_stderr 'measures another machine'
        expect_no_file times_mixed
    done
fi

# ---- the array: each task its shard, once more after a kill, then the merge ----
mkdir bin
cat >bin/srun <<'SH'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
# a step that lasts until the task has been requeued
if [ -n "${FAKE_WAIT:-}" ]; then
    : >srun_runs
    for tenth in $(seq 600); do
        [ ! -e scontrol_log ] || break
        sleep 0.1
    done
fi
exec "$@"
SH
printf '#!/bin/sh\necho "$@" >>scontrol_log\n' >bin/scontrol
chmod +x bin/srun bin/scontrol
PATH=$PWD/bin:$PATH
ATTNUM=$program
SLURM_CPUS_PER_TASK=2
SLURM_JOB_ID=4711
SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=3 SLURM_ARRAY_TASK_COUNT=3
export PATH ATTNUM SLURM_CPUS_PER_TASK SLURM_JOB_ID
export SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_COUNT
slurm() {
    command="sweep.slurm $*"
    "$source/scripts/sweep.slurm" "$@" >stdout 2>stderr </dev/null
    code=$?
}
curves='convergence/curves --quick --input smooth --samples 8 --sampling pool'
attnum run $curves --out curves
for task in 1 2 3; do
    command="sweep.slurm, killed"
    SLURM_ARRAY_TASK_ID=$task
    export SLURM_ARRAY_TASK_ID
    timeout -s KILL 0.2 "$program" run $curves --shard $task/3 --threads 1 --out array >stdout 2>&1
    slurm $curves --out array
    expect_exit 0
    expect_stderr 'points are there already'
    expect_stdout "shard $task of 3"
done
slurm merge array --out array_merged
expect_exit 0
same_csvs curves array_merged
SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_COUNT=1
slurm $curves --out array
expect_exit 2
expect_stderr 'ATTNUM_SHARDS=N'
ATTNUM_SHARDS=3 slurm $curves --out array
expect_exit 0
expect_stderr '8 of 8 points are there already'
slurm --nonsense
expect_exit 2
command='sweep.slurm near its time limit'
ATTNUM_SHARDS=3 FAKE_WAIT=yes "$source/scripts/sweep.slurm" $curves --out array >stdout 2>stderr &
task=$!
for tenth in $(seq 600); do
    [ ! -e srun_runs ] || break
    sleep 0.1
done
kill -USR1 $task
wait $task
code=$?
expect_exit 0
[ "$(cat scontrol_log)" = 'requeue 4711' ]
check "it is requeued, once" $?
expect_stdout 'shard 3 of 3'
unset SLURM_ARRAY_TASK_ID
slurm $curves
expect_exit 2

# ---- by hand: a task of srun is a shard ----
SLURM_STEP_ID=0 SLURM_NTASKS=2
export SLURM_STEP_ID SLURM_NTASKS
for task in 0 1; do
    SLURM_PROCID=$task
    export SLURM_PROCID
    slurm $curves --out tasks
    expect_exit 0
done
attnum merge tasks --out tasks_merged
expect_exit 0
same_csvs curves tasks_merged

finish
