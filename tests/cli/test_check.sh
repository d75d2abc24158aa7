#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_check.sh PROGRAM SOURCE: attnum check, on cases that it emits itself and on files that nobody
# should have written.
set -u
source=$(realpath "$2")
. "$(dirname "$0")/checks.sh"

# ---- emission ----
attnum check --emit-case cases --n 16 --d 8 --operator soft/code,softpp,sima/paper,softmax/attention,xnorm/paper,elu/stable
expect_exit 0
expect_quiet
expect_stdout '8 cases in cases'
for file in tokens values output grad_output grad_tokens grad_values; do
    [ -s "cases/soft-code/$file.npy" ]
    check "soft-code/$file.npy is there" $?
done
mkdir again && (cd again && "$program" check --emit-case cases --n 16 --d 8 --operator soft/code >/dev/null)
command='emission again'
cmp -s cases/soft-code/grad_tokens.npy again/cases/soft-code/grad_tokens.npy
check "the same bytes" $?
[ "$(sed -n 's/.*"sha256":[^"]*"\([0-9a-f]*\)".*/\1/p' again/cases/manifest.json | head -n 1)" = \
    "$(sha256sum again/cases/soft-code/tokens.npy | cut -d' ' -f1)" ]
check "the manifest's SHA-256 is the file's" $?

awk '/"f32":/ {gsub(/[^0-9.e-]/, "", $2); if ($2 + 0 < 3e-7 || $2 + 0 > 1e-4) bad = 1; n++} END {exit bad || n < 20}' \
    cases/manifest.json
check "tolerances are f32's" $?

# The arguments that the manifest gives for a case, with gradients and without.
arguments() {
    grep '"check":' cases/manifest.json | grep "\"$1\"" | sed 's/.*\[//; s/\].*//; s/[",]/ /g; s/  */ /g; s# \([a-z]*-[a-z]*/\)# cases/\1#g; s#=\([a-z]*-[a-z]*/\)#=cases/\1#g'
}
forward() {
    arguments "$1" | sed 's/--grad[a-z-]* *[^ ]*//g'
}

# ---- other sizes, layouts and inputs: what is written is read again ----
# arguments_in FOLDER NAME: the arguments that its manifest gives for the case of that name.
arguments_in() {
    awk -v name="\"$2\"," '$1 == "\"name\":" { on = $2 == name } on && /"check":/' "$1/manifest.json" |
        sed 's/.*\[//; s/\].*//; s/[",]/ /g; s/  */ /g' | sed "s# \([^ =]*\.npy\)# $1/\1#g; s#=\([^ ]*\.npy\)#=$1/\1#g"
}
attnum check --emit-case sizes --operator sima/code,softmax/attention --n 20,33 --d 8 --heads 4 --kv-heads 2 \
    --layout bshd --masks none,padding --value-width 5
expect_exit 0
expect_quiet
expect_stdout '8 cases in sizes'
for name in sima-code-n20-none softmax-attention-n33-padding; do
    attnum check $(arguments_in sizes $name)
    expect_exit 0
    expect_quiet
    expect_stdout '4 heads'
    expect_stdout 'keys and values of 2 heads'
    expect_stdout 'grad-tokens (exact): pass'
done
attnum check $(arguments_in sizes sima-code-n20-none) --gradient keys=sizes/sima-code-n20-none/grad_keys.npy
expect_usage '--gradient keys: sums over groups of heads'
attnum check --emit-case mine --operator soft/code,sima/code --tokens cases/soft-code/tokens.npy
expect_exit 0
cmp -s mine/soft-code/tokens.npy cases/soft-code/tokens.npy
check "given tokens are the tokens" $?
attnum check $(arguments_in mine sima-code)
expect_exit 0
expect_stdout 'No --keys were given'
attnum check --emit-case few --masks causal --operator sima/code,elu/stable
expect_exit 0
expect_stdout 'left out: 1 of sima: it has no causal form'

# ---- another layout: said where it shows, and not where it is given ----
attnum check --emit-case many --operator sima/code --heads 20 --n 4 --d 8
attnum check $(arguments_in many sima-code)
expect_exit 0
expect_one_error '1 x 20 x 4 x 8 is taken for b x h x n x d, more heads than tokens'
attnum check $(arguments_in many sima-code) --layout bhnd
expect_exit 0
expect_quiet

# ---- why there is no exact answer, what the baseline may err, and what may be asked for ----
attnum check --emit-case long --operator elu/stable --n 6000 --d 4 --heads 1
long=$(arguments_in long elu-stable | sed 's/--grad[a-z-]* *[^ ]*//g')
attnum check $long --dtype f32
expect_exit 0
expect_stdout 'an exact one might take'
expect_stdout 'small against what passes'
expect_stdout 'output (baseline): pass'
attnum check $long --dtype f64
expect_stdout 'only --reference exact tells'
attnum check $(arguments sima/paper) --reference f64 --format json
expect_exit 0
expect_stdout '"answer": "baseline"'
expect_stdout '"why": "--reference asks for it"'
expect_stdout '"answer_blurs": true'
expect_no_stdout '"answer_error": 0,'
attnum check $(arguments sima/paper) --reference exact
expect_exit 0
expect_quiet
expect_stdout 'as --reference asks for it'
expect_stdout 'output (exact): pass'
attnum check --emit-case enormous --operator elu/stable --n 200000 --d 4 --heads 1
attnum check $(arguments_in enormous elu-stable | sed 's/--grad[a-z-]* *[^ ]*//g') --reference exact
expect_exit 3
expect_stderr '--reference exact: it takes 1.3e+03 GB'
rm -r enormous

# ---- true outputs pass, in every precision ----
for name in soft/code softpp/code softpp/paper softpp/exact sima/paper softmax/attention xnorm/paper elu/stable; do
    attnum check $(arguments $name)
    expect_exit 0
    expect_quiet
    expect_stdout 'output (exact): pass'
    expect_stdout 'grad-tokens (exact): pass'
    expect_stdout 'grad-values (exact): pass'
done
attnum check $(arguments xnorm/paper | sed 's/--output *[^ ]*//')
expect_exit 0
expect_no_stdout 'output (exact)'
expect_stdout 'grad-gamma (exact): pass'
for dtype in f64 f32 tf32 f16 bf16; do
    attnum check $(forward sima/paper) --dtype $dtype
    expect_exit 0
    expect_stdout "sima/paper in $dtype"
done

# ---- which landmarks, where nothing is said ----
attnum bench --emit-tokens tokens --quick --operator soft --n 196,225 --batch 1
expect_exit 0
attnum check --operator softpp --tokens tokens/tokens_b1_h2_n196_d32_q.npy \
    --values tokens/tokens_b1_h2_n196_d32_v.npy --output tokens/tokens_b1_h2_n196_d32_v.npy
expect_exit 1
expect_quiet
expect_stdout '49 landmarks: pool'
attnum check --operator softpp --tokens tokens/tokens_b1_h2_n225_d32_q.npy \
    --values tokens/tokens_b1_h2_n225_d32_v.npy --output tokens/tokens_b1_h2_n225_d32_v.npy
expect_usage '15 x 15' '--landmarks' 'stride=K'

# ---- mistakes are named first ----
# expect_named CASE NAME OPTION...: the case's output is no answer to the problem with the options,
# and NAME is what it is.
expect_named() {
    name=$1 text=$2
    shift 2
    attnum check $(forward "$name" | sed "$edit") "$@"
    expect_exit 1
    expect_stdout 'output (exact): FAIL'
    sed -n '/^what else/{n;p;}' stdout | grep -F "$text" | grep -q 'explains it'
    check "'$text' is named first, and explains it" $?
}
edit=
expect_named soft/code 'scale 1/(2 sqrt(d)), of one head' --scale embed
edit='s/tokens.npy/kept.npy/; s/keys.npy/tokens.npy/; s/kept.npy/keys.npy/'
expect_named sima/paper 'queries and keys swapped'
edit='s/iterations=20/iterations=7/'
expect_named softpp/paper 'variant softpp/' # 20 steps
attnum check $(forward softpp/code | sed 's/iterations=20/iterations=14/') --dtype f16
expect_exit 1
expect_stdout 'output (exact): FAIL'
expect_stdout 'explains it'
edit='s/ridge=0.01/ridge=0/'
expect_named soft/code 'variant soft/code'
edit='s/causal=false/causal=true/'
expect_named softmax/attention 'variant softmax/attention'
edit='s/norm=l1/norm=l2/'
expect_named sima/paper 'variant sima/paper'
edit='s/axis=columns/axis=rows/'
expect_named xnorm/paper 'variant xnorm/paper'
edit='s#softpp/paper#soft/paper#g; s#cases/soft/#cases/softpp-#'
expect_named softpp/paper 'normalised: D^-1/2 A+ D^-1/2'
edit='s/logit_scale=0/logit_scale=0.125/'
expect_named softmax/attention 'logits scaled by 1/sqrt(d)'

# The same of a gradient: expect_gradient_named CASE GRADIENT NAME OPTION...
expect_gradient_named() {
    name=$1 gradient=$2 text=$3
    shift 3
    attnum check $(arguments "$name" | sed 's/--output *[^ ]*//; s/--gradient *[^ ]*//g' | sed "$edit") "$@"
    expect_exit 1
    expect_stdout "$gradient (exact): FAIL"
    sed -n '/^what else/{n;p;}' stdout | grep -F "$text" | grep -q 'explains it'
    check "'$text' is named first, and explains it" $?
}
edit=
expect_gradient_named sima/paper grad-tokens 'the gradient of values in its place' \
    --gradient tokens=cases/sima-paper/grad_values.npy
expect_gradient_named soft/code grad-values 'scale 1/(2 sqrt(d)), of one head' \
    --gradient=values=cases/soft-code/grad_values.npy --scale embed

# ---- files made here ----
# npy FILE TYPE SHAPE [FORTRAN]: elements from stdin.
npy() {
    {
        printf '\223NUMPY\001\000\166\000'
        printf '%-117s\n' "{'descr': '$2', 'fortran_order': ${4:-False}, 'shape': ($3), }"
        cat
    } >"$1"
}
head -c 2048 /dev/zero | npy zeros.npy '<f8' '1, 2, 16, 8'
tail -c 2048 cases/sima-paper/output.npy | npy fortran.npy '<f8' '1, 2, 16, 8' True
{ tail -c 2048 cases/sima-paper/output.npy | head -c 2040; printf '\000\000\000\000\000\000\370\177'; } |
    npy nan.npy '<f8' '1, 2, 16, 8'
tail -c 1024 cases/sima-paper/tokens.npy | npy half.npy '<f4' '1, 2, 16, 8'
edit='s#--output *[^ ]*##'
sima=$(forward sima/paper | sed "$edit")
attnum check $sima --output zeros.npy
expect_exit 1
expect_stdout 'output (exact): FAIL'
expect_stdout 'zero throughout'
expect_stdout 'batch 0, head 0: every block of 1 row x 1 column is zero'
expect_stdout '1 more head FAILs'
# rows 8 to 11 of head 1, columns 4 to 7
{
    tail -c 2048 cases/sima-paper/output.npy | head -c 1536
    for row in 8 9 10 11; do
        tail -c 2048 cases/sima-paper/output.npy | tail -c +$((1024 + row * 64 + 1)) | head -c 32
        head -c 32 /dev/zero
    done
    tail -c 256 cases/sima-paper/output.npy
} | npy tile.npy '<f8' '1, 2, 16, 8'
attnum check $sima --output tile.npy
expect_exit 1
expect_stdout 'batch 0, head 1: errors over what passes, in blocks of 1 row x 1 column'
sed -n '/^batch 0, head 1: errors/,/^\./p' stdout | sed 1d >map
{
    for row in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        cells=........
        case $row in 8 | 9 | 10 | 11) cells=....0000 ;; esac
        printf 'row %2d  %s\n' "$row" "$cells"
    done
    printf 'column  0\n. up to 1: passes    0 zero\n'
} | cmp -s - map
check "the map shows the tile" $?
attnum check $sima --output tile.npy --format json
expect_exit 1
expect_no_stdout 'errors over'
python3 -m json.tool stdout >/dev/null
check "JSON is JSON, without a map" $?
# sums of zeros are divided by 0: no output is right or wrong, and another head's is judged all the same
attnum check --operator sima/paper --tokens zeros.npy --values cases/sima-paper/values.npy --output zeros.npy
expect_exit 77
expect_quiet
expect_stdout 'undefined: the answer is not finite'
expect_stdout 'output (exact): skipped'
for name in tokens keys; do
    { tail -c 1024 "cases/sima-paper/$name.npy" | head -c 512; head -c 512 /dev/zero; } | npy "one_$name.npy" '<f4' '1, 2, 16, 8'
done
{ tail -c 2048 cases/sima-paper/output.npy | head -c 1024; head -c 1024 /dev/zero; } | npy one_output.npy '<f8' '1, 2, 16, 8'
one='--operator sima/paper --tokens one_tokens.npy --keys one_keys.npy --values cases/sima-paper/values.npy'
attnum check $one --output one_output.npy
expect_exit 0
attnum check $one --output zeros.npy
expect_exit 1
attnum check $sima --output nan.npy --dtype bf16
expect_exit 1
expect_stdout 'output (exact): FAIL'
attnum check $sima --output fortran.npy
expect_exit 1
sed -n '/^what else/{n;p;}' stdout | grep -q "called Fortran's.*explains it"
check "the order is named" $?

# ---- of many heads, those of which nothing can be said are listed before those that pass ----
attnum check --emit-case crowd --operator sima/paper --heads 20 --n 4 --d 8
for name in tokens keys; do
    { tail -c 2560 "crowd/sima-paper/$name.npy" | head -c 2432; head -c 128 /dev/zero; } | npy "crowd_$name.npy" '<f4' '1, 20, 4, 8'
done
attnum check --operator sima/paper --tokens crowd_tokens.npy --keys crowd_keys.npy --layout bhnd \
    --values crowd/sima-paper/values.npy --output crowd/sima-paper/output.npy --html crowd.html
expect_exit 0
expect_stdout 'the worst 16 of 20 heads'
expect_stdout 'nothing can be said of 1 of 20 heads'
expect_stdout 'skipped'
expect_stdout 'output (exact): pass'
grep -q 'nothing can be said of 1 of 20 heads' crowd.html
check "the page says so" $?

# ---- what would be ignored is refused ----
attnum check --emit-case scaled --operator softmax,rff,gaussian --scale 0.5 --distance expanded --n 9 --d 4
for name in softmax-attention rff-fourier gaussian-exact; do
    attnum check $(arguments_in scaled $name)
    expect_exit 0
done
attnum check $(forward softmax/attention) --scale head --distance direct
expect_exit 0
attnum check $(forward softmax/attention) --scale 0.001
expect_usage '--scale: softmax takes none'
attnum check $(forward sima/paper) --distance expanded
expect_usage '--distance: sima takes none'
attnum check $(forward soft/code | sed 's/--param stride=2//') --param count=9
expect_usage '--param count: sampling=pool does not use it; expected sampling=indices, first'
attnum check $(forward soft/code) --param rcond=-1,alpha=0
expect_exit 0
attnum check $(forward soft/code) --param rcond=1e-3
expect_usage '--param rcond: inverse=nr-soft does not use it; expected inverse=eig, pivoted-cholesky'
attnum check $(forward soft/code | sed 's/=nr-soft/=nr/; s/numerator=1.8/alpha=0.1/; s/search=none/search=square/; s/=matrix/=batch/')
expect_exit 1
attnum check $(forward soft/code | sed 's/--param sampling=[a-z]*//; s/--param stride=2//') --landmarks cases/soft-code/tokens.npy --param count=9,sampling=first
expect_usage '--landmarks: expected no --param count'
attnum check --emit-case ignored --operator soft/code --param sampling=first,stride=2
expect_usage '--param stride: sampling=first does not use it'
tail -c 2048 cases/sima-paper/grad_values.npy | npy double.npy '<f8' '1, 2, 16, 8'
tail -c 1024 cases/sima-paper/tokens.npy | npy single.npy '<f4' '1, 2, 16, 8'
gradients='--grad-output cases/sima-paper/grad_output.npy --gradient values=double.npy'
attnum check $sima --output single.npy $gradients
expect_usage '--dtype: missing; the results are in files of several types'
attnum check $sima --output single.npy $gradients --dtype f32
expect_exit 1

# ---- the page: whole or not at all, well formed, and it asks for nothing outside it ----
name="<script>&\"it's\".npy"
cp tile.npy "$name"
attnum check $sima --output "./$name" --html report.html
expect_exit 1
expect_quiet
expect_stdout 'report.html'
command='report.html'
! grep -qiE 'https?:|//[a-z]|<script|<link|<iframe|@import|src=|href=' report.html
check "no address, no script" $?
! grep -oE 'url\([^)]*\)' report.html | grep -qv '^url(#hatch)$'
check "urls are the page's own" $?
grep -q '&lt;script&gt;&amp;' report.html
check "the file's name is escaped" $?
grep -q '<h1>sima/paper in f64 <span class="verdict" data-verdict="FAIL">FAIL</span>' report.html
check "the verdict" $?
grep -q '<title>rows 8 to 11, columns 4 to 7: zero</title>' report.html
check "the tile, as one rectangle of the map" $?
[ "$(grep -c '<title id=' report.html)" -eq 1 ]
check "one map, of the head that FAILs" $?
grep -q '<td class="text">batch 0, head 1 alone: rows 8 to 11</td>' report.html
check "the finding" $?
grep -q '<td class="text">FAIL</td><td class="text">exact</td><td class="text">batch 0, head 1</td><td>[0-9]' report.html
check "the result, against which answer, its worst head and ratio" $?
! grep -q '<td>\([^<]*\)</td><td>\1</td></tr>' report.html
check "what rounding may do is more than what good kernels reach" $?
grep '^<path class="mark" d="M[0-9.]* [0-9.]*l0 4"' report.html | sed 's/.*>\([0-9]*\)<.*/\1/' | tr '\n' ' ' | grep -qx '0 1 2 3 4 5 6 7 '
check "numbers of columns" $?
grep '^<path class="mark" d="M[0-9.]* [0-9.]*l-4 0"' report.html | sed 's/.*>\([0-9]*\)<.*/\1/' | tr '\n' ' ' | grep -qx '0 2 4 6 8 10 12 14 '
check "numbers of rows" $?
grep -q '<ul class="key">.*<rect class="m0" [^>]*></svg>up to 1: passes<.*<rect class="zero" [^>]*></svg>zero<' report.html
check "what the colours mean" $?
grep -q '<td class="text">epsilon</td><td class="text">0</td>' report.html
check "the parameters" $?
! grep -qE '(nan|inf)[" ]' report.html
check "no number that is none in a drawing" $?
if command -v python3 >/dev/null; then
    python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' report.html >parsed 2>&1
    check "well-formed" $?
fi
attnum check $(forward sima/paper) --html report.html --format json
expect_exit 0
grep -q 'data-verdict="pass">pass' report.html && ! grep -q '<title id=\|data-verdict="FAIL">' report.html
check "a pass, and no map" $?
attnum check $sima --output nan.npy --html nan.html
expect_exit 1
grep -q '<rect class="none"' nan.html && ! grep -qE '="[^"]*(nan|inf)[^"]*"' nan.html
check "NaN has its colour, and no coordinate is NaN" $?
{ tail -c 2048 cases/sima-paper/output.npy | head -c 2040; printf '\000\000\000\000\000\000\360\077'; } |
    npy one.npy '<f8' '1, 2, 16, 8'
attnum check $sima --output one.npy --dtype bf16 --html one.html
expect_exit 1
grep -q '<rect class="m5" .*<title>rows 15 to 15, columns 7 to 7: over ' one.html &&
    grep -q '<ul class="key">.*<rect class="m5" [^>]*></svg>over ' one.html
check "what is farthest off has the strongest colour" $?
attnum check --emit-case tall --operator sima/paper --n 130 --d 8
tall="$(forward sima/paper | sed "$edit; s#cases/#tall/#g")"
{ tail -c 16640 tall/sima-paper/output.npy | head -c 16632; printf '\000\000\000\000\000\000\360\077'; } |
    npy tall.npy '<f8' '1, 2, 130, 8'
attnum check $tall --output tall.npy --html tall.html
expect_exit 1
[ "$(sed -n 's/^<path class="mark".*>\([0-9]*\)<.text>$/\1/p' tall.html | tr '\n' ' ')" = '0 32 64 96 128 0 1 2 3 4 5 6 7 ' ]
check "numbers of rows and columns where a block has four rows" $?
attnum check $(arguments sima/paper) --html report.html
[ "$(grep -c '^<section>' report.html)" -eq "$(grep -c 'exact): pass' stdout)" ]
check "a section for every result" $?
attnum check $sima --output none.npy --html unwritten.html
expect_exit 3
expect_one_error 'none.npy'
expect_no_file unwritten.html
attnum check $sima --output tile.npy --html nowhere/page.html
expect_exit 3
expect_one_error 'nowhere/page.html'
mkdir folder.html
attnum check $sima --output tile.npy --html folder.html
expect_exit 3
expect_one_error 'folder.html'
attnum check --emit-case html --operator sima --html page.html
expect_usage '--html' '--emit-case'

# ---- mistakes of one's own: named if they explain it, and only then ----
{ tail -c 2048 cases/sima-paper/output.npy | head -c 1024 && tail -c 1024 cases/sima-paper/grad_values.npy; } |
    npy mixed.npy '<f8' '1, 2, 16, 8'
cat >mistakes.txt <<'END'
# of our kernel

the second head's buffer was taken for another: output=mixed.npy
the norm of the old kernel: norm=l2 epsilon=0.5
END
# expect_first TEXT: the first finding, which explains it.
expect_first() {
    expect_exit 1
    sed -n '/^what else/{n;p;}' stdout | grep "^$1 " | grep -q 'explains it'
    check "'$1' is named first, and explains it" $?
}
attnum check $sima --output mixed.npy
expect_exit 1
expect_no_stdout 'explains it'
attnum check $sima --output mixed.npy --mistake mistakes.txt --html mistake.html
expect_first "the second head's buffer was taken for another"
expect_no_stdout 'the norm of the old kernel'
grep -q 'the second head&#39;s buffer was taken for another</td>' mistake.html
check "the page names it" $?
attnum check $sima --output mixed.npy --mistake mistakes.txt --format csv
expect_stdout "the second head's buffer was taken for another,"
mkdir l2 && (cd l2 && "$program" check --emit-case cases --n 16 --d 8 --operator sima/paper --param norm=l2,epsilon=0.5 >/dev/null)
attnum check $sima --output l2/cases/sima-paper/output.npy --mistake mistakes.txt
expect_first 'the norm of the old kernel'
attnum check $(forward sima/paper) --mistake mistakes.txt
expect_exit 0
expect_no_stdout 'the norm of the old kernel'
attnum check $sima --output tile.npy --mistake mistakes.txt
expect_exit 1
! grep -E "old kernel|buffer" stdout | grep -q 'explains it'
check "what does not fit explains nothing" $?
edit='s/logit_scale=0/logit_scale=0.2/'
printf 'our scale: logit_scale=0\n' >scale.txt
attnum check $(forward softmax/attention | sed "$edit") --mistake scale.txt
expect_first 'our scale'
attnum check $(forward soft/code) --scale 0.3 --mistake scale.txt
expect_usage 'scale.txt, line 1' 'logit_scale: not a parameter of soft'
printf 'our scale: scale=0.17677669529663689\n' >scale.txt # 1/(2 sqrt(8))
attnum check $(forward softmax/attention | sed "$edit") --mistake scale.txt
expect_usage 'scale.txt, line 1' 'scale: softmax has none'
attnum check $(forward soft/code) --scale 0.3 --mistake scale.txt
expect_first 'our scale'
# hostile files: one line that says where
head -c 512 /dev/zero | npy short.npy '<f8' '1, 2, 8, 4'
for line in x ': output=zeros.npy' 'a:' 'a: b' 'a: =1' 'a: output=' 'a: epsilon=x' 'a: norm=l7' 'a: scale=0' 'a: scale=nan' \
    'a: iterations=3' "$(printf 'a\033[31m: epsilon=1')"; do
    printf '# a comment\n\n%s\n' "$line" >bad.txt
    attnum check $sima --output tile.npy --mistake bad.txt
    expect_usage 'bad.txt, line 3'
done
for line in output=none.npy output=short.npy output=nan.npy grad-tokens=short.npy; do
    echo "a: $line" >bad.txt
    attnum check $sima --output tile.npy --mistake bad.txt
    expect_exit 3
    expect_one_error "${line#*=}"
    case $line in *short*) expect_stderr 'shape: 1 x 2 x 8 x 4, expected 1 x 2 x 16 x 8' ;; esac
done
for bad in none.txt folder.html; do
    attnum check $sima --output tile.npy --mistake $bad
    expect_exit 3
    expect_one_error "$bad"
done
attnum check $sima --output tile.npy --mistake zeros.npy
expect_usage 'zeros.npy' 'a text file'
i=0
while [ $i -lt 70 ]; do
    echo "mistake $i: output=zeros.npy"
    i=$((i + 1))
done >bad.txt
attnum check $sima --output tile.npy --mistake bad.txt
expect_exit 3
expect_one_error 'at most 64 files'

# ---- landmarks as they are: tokens 1 to 4 of either head, picked or given ----
printf '\000\000\200\077\000\000\000\100\000\000\100\100\000\000\200\100' | npy indices.npy '<f4' '1, 4'
soft=$(forward soft/code | sed 's#--output *[^ ]*##; s/--param sampling=[a-z]*//; s/--param stride=2//')

for head in 0 1; do
    tail -c 1024 cases/soft-code/tokens.npy | tail -c +$((head * 512 + 33)) | head -c 128
done | npy landmarks.npy '<f4' '1, 2, 4, 8'
attnum check $soft --output zeros.npy --param sampling=indices,indices=indices.npy
expect_exit 1
cut -c 1-200 stdout | grep -E '^ +0 ' >picked
attnum check $soft --output zeros.npy --landmarks landmarks.npy
expect_exit 1
grep -E '^ +0 ' stdout | awk '{print $1, $2, $3, $6, $13}' >given_short
awk '{print $1, $2, $3, $6, $13}' picked | cmp -s - given_short
check "the same answer is wanted" $?
attnum check $sima --output zeros.npy --landmarks landmarks.npy
expect_usage '--landmarks'

# ---- masks ----
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do printf '\000\000\200\077'; done | npy all.npy '<f4' '1, 16'
{ tail -c 60 all.npy; printf '\000\000\000\000'; } | npy fewer.npy '<f4' '1, 16'
attnum check $(forward sima/paper) --mask all.npy --query-mask all.npy
expect_exit 0
attnum check $(forward sima/paper) --mask fewer.npy
expect_exit 1
{ tail -c 60 all.npy; printf '\000\000\000\100'; } | npy two.npy '<f4' '1, 16'
attnum check $(forward sima/paper) --mask two.npy
expect_exit 3
expect_one_line
expect_stderr 'is 2, expected 0 or 1'

# ---- hostile files and command lines: one line, the file or the option, what was expected ----
attnum check
expect_usage '--operator'
attnum check --operator soft,sima
expect_usage '--operator' 'one NAME'
attnum check --operator sima --tokens x.npy
expect_usage '--values: missing'
attnum check $sima
expect_usage '--output: missing'
attnum check $sima --grad-output zeros.npy
expect_usage '--gradient: missing'
attnum check $sima --gradient tokens=zeros.npy
expect_usage '--grad-output: missing'
for bad in tokens tokens= gamma=zeros.npy query=zeros.npy; do
    attnum check $sima --grad-output zeros.npy --gradient "$bad"
    expect_usage '--gradient'
done
attnum check $sima --grad-output zeros.npy --gradient tokens=none.npy
expect_exit 3
expect_one_error 'none.npy'
attnum check $sima --output none.npy
expect_exit 3
expect_one_error 'none.npy'
head -c 1024 /dev/zero | npy narrow.npy '<f4' '1, 2, 16, 8'
attnum check $sima --output narrow.npy --values half.npy
expect_usage '--values: given twice'
head -c 512 /dev/zero | npy short.npy '<f4' '2, 8, 8'
attnum check $sima --output short.npy
expect_exit 3
expect_one_line
expect_stderr 'short.npy: shape: 1 x 2 x 8 x 8, expected 1 x 2 x 16 x 8'
attnum check --operator sima --tokens cases/sima-paper/tokens.npy --values short.npy --output zeros.npy
expect_exit 3
expect_one_line
expect_stderr 'short.npy: shape'
attnum check --operator sima --tokens nan.npy --values nan.npy --output zeros.npy
expect_exit 3
expect_one_line
expect_stderr 'is nan, expected a finite number'
attnum check --operator soft --tokens cases/soft-code/tokens.npy --keys cases/soft-code/tokens.npy \
    --values cases/soft-code/values.npy --output zeros.npy
expect_usage '--keys: soft takes none'
attnum check --operator soft --tokens cases/soft-code/tokens.npy --values cases/soft-code/values.npy --output zeros.npy
expect_usage 'stride'
for bad in stride stride= stride=x stride=-1 stride=1.5 stride=nan iterations=1e99 inverse=nr-papr nothing=1 =1; do
    attnum check --operator soft --tokens cases/soft-code/tokens.npy --values cases/soft-code/values.npy \
        --output zeros.npy --param "$bad"
    expect_usage '--param'
done
attnum check $sima --output zeros.npy --param epsilon=1 --dtype f32,f64
expect_usage '--'
attnum check --operator softmax --tokens cases/softmax-attention/tokens.npy --values cases/softmax-attention/values.npy \
    --output zeros.npy --mask zeros.npy
expect_exit 3
expect_one_line
expect_stderr 'zeros.npy: shape'
attnum check --operator soft --tokens cases/soft-code/tokens.npy --values cases/soft-code/values.npy --output zeros.npy \
    --param stride=2 --grid 3x5
expect_usage '--grid 3x5'
attnum check --operator soft --output zeros.npy --input photos
expect_usage '--input'

# ---- help ----
attnum check --operator softpp/code --help
expect_exit 0
expect_stdout 'parameters of softpp/code'
expect_stdout 'search_limit         1.01'
expect_no_stdout 'feature_epsilon'
attnum check --operator efficient --help
expect_stdout 'none'

# ---- a kernel of one's own, in Python ----
if python3 -c 'import numpy' 2>/dev/null; then
    command='test_cases.py'
    ATTNUM_CASES=$PWD/cases python3 "$source/bench/peers/test_cases.py" >stdout 2>stderr
    code=$?
    expect_exit 0
    expect_stdout 'softmax-attention output f64: pass'
fi

finish
