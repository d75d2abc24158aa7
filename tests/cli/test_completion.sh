#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_completion.sh PROGRAM ATTNUM.BASH: the completion of the command line, called as bash calls it.
set -u
. "$(realpath "$2")"
. "$(dirname "$0")/checks.sh" "$1"
unset -f attnum # the completion is to find the program
mkdir bin empty folder && ln -s "$program" bin/attnum
PATH=$folder/bin:$PATH
: >tokens.npy
: >other.txt
: >rows.csv
: >folder/inside.npy
: >stdout
: >stderr

# complete_line WORD...: the last one is being typed; the words as bash parts them.
complete_line() {
    command="complete $*"
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _attnum 2>stderr
    printf '%s\n' "${COMPREPLY[@]}" | sort >stdout
    expect_quiet
}

# offers WORD...: these, whatever else.
offers() {
    for word in "$@"; do
        grep -qxF -e "$word" stdout
        check "offers $word" $?
    done
}

# offers_only WORD...: these and nothing else.
offers_only() {
    printf '%s\n' "$@" | sort | cmp -s - stdout
    check "offers $*, and no more" $?
}

# ---- verbs ----
complete_line attnum ''
offers run list claims inspect check regress bench merge train --help --version
complete_line attnum cl
offers_only claims
complete_line attnum --v
offers_only --version
complete_line attnum nonsense ''
offers_only ''
complete_line no-such-program ''
offers_only ''
[ "$(complete -p attnum)" = 'complete -F _attnum attnum' ]
check "is registered" $?

# ---- every option of every verb, and of every experiment ----
options_of() {
    "$program" "$@" --help | sed -n 's/^  \(--[a-z][a-z0-9-]*\).*/\1/p' | sort
}
for verb in $("$program" --help | sed -n 's/^  attnum \([a-z][a-z]*\) .*/\1/p'); do
    complete_line attnum "$verb" --
    options_of "$verb" | cmp -s - stdout
    check "the options of $verb" $?
    [ -s stdout ]
    check "there are some" $?
done
for name in $("$program" list experiments --format csv | sed 1d | cut -d, -f2); do
    complete_line attnum run "$name" --
    options_of run "$name" | cmp -s - stdout
    check "the options of $name" $?
done
complete_line attnum run convergence/curves accuracy/operators --quick --o
offers_only --out --operator
complete_line attnum run --q
offers_only --quick

# ---- operands ----
complete_line attnum run conv
offers_only $("$program" list experiments --format csv | cut -d, -f2 | grep '^conv')
complete_line attnum run --quick convergence/curves cost/c
offers_only cost/counts
complete_line attnum run a
offers all accuracy/operators
complete_line attnum list i
offers_only inverses inputs
complete_line attnum claims S0
offers_only $("$program" list claims --format csv | cut -d, -f2 | grep '^S0')
complete_line attnum claims --seed 1 N
offers_only $("$program" list claims --format csv | cut -d, -f2 | grep '^N')
complete_line attnum inspect ''
offers_only tokens.npy bin empty folder
complete_line attnum inspect --quick folder/
offers_only folder/inside.npy
complete_line attnum regress ''
offers_only rows.csv bin empty folder
complete_line attnum merge ''
offers_only bin empty folder
complete_line attnum merge empty f
offers_only folder
complete_line attnum check ''
offers_only ''

# ---- what an option takes ----
for line in 'bench --operator softp:softpp' 'bench --operator softmax,si:softmax,sima' \
    'bench --operator softpp/p:softpp/paper' 'bench --variant chebyshev-9,eig,piv:chebyshev-9,eig,pivoted-cholesky' \
    'bench --device c:cpu cuda' 'bench --isa a:auto avx2 avx512' 'claims --isa b:base' 'bench --dtype f32,f6:f32,f64' 'list --format j:json' \
    'run accuracy/operators --storage b:bf16' 'run spectral/norm-growth --sampling po:pool' 'run spectral/bounds --distance d:direct' \
    'run convergence/curves --input photos,smo:photos,smooth' 'run convergence/curves --input to:tokens.npy' \
    'bench --out f:folder' 'claims --out e:empty' 'merge --out f:folder' 'merge --format c:csv' \
    'inspect --scale e:embed' 'inspect --heads 8:' 'check --operator softp:softpp' 'check --dtype f1:f16' \
    'check --emit-case e:empty' 'check --distance e:expanded' 'check --reference e:exact' 'regress --storage tf:tf32' \
    'regress --input photos,cl:photos,clusters' 'regress --update a:' \
    'inspect --html o:other.txt' \
    'bench --n 7:' 'bench --threads :'; do
    complete_line attnum ${line%%:*}
    case $line in *' :') complete_line attnum ${line%%:*} '' ;; esac
    offers_only ${line#*:}
done
for option in tokens keys values output landmarks mask query-mask grad-output; do
    complete_line attnum check --$option ''
    offers_only tokens.npy bin empty folder
done
for option in baseline against; do
    complete_line attnum regress --$option ''
    offers_only rows.csv bin empty folder
done
complete_line attnum run spectral/bounds --scale ''
offers_only head embed
complete_line attnum run convergence/curves --input ''
offers photos iid smooth tokens.npy folder
! grep -q 'other.txt' stdout
check "offers no other.txt" $?
complete_line attnum run convergence/curves --input folder/
offers_only folder/inside.npy

# ---- bash parts words at = and : ----
complete_line attnum list --format = c
offers_only csv
complete_line attnum list --format =
offers_only table csv json
complete_line attnum run convergence/curves --input iid : 0.5,smo
offers_only 0.5,smooth
complete_line attnum run convergence/curves --input = iid : 0.5 : 1,smo
offers_only 1,smooth

# ---- nothing was run ----
[ "$(ls | tr '\n' ' ')" = 'bin empty folder other.txt rows.csv stderr stdout tokens.npy ' ]
check "no file is left" $?
finish
