#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_same_bits.sh PROGRAM: outputs of all operators are the same bits on 1, 2, 3 and 8 threads and
# with several of OpenBLAS's kernels (CONTRIBUTING.md, "The same bits"). An error that regress
# measures is over the whole output, and its 17 digits change with any bit of it.
set -u
. "$(dirname "$(realpath "$0")")/checks.sh" "$1"

# errors_of FOLDER ARGUMENT...: measures; leaves operator .. samples and digits in FOLDER.errors
errors_of() {
    result=$1
    shift
    attnum regress --n 64 --input iid --dtype f32,f64 "$@" --out "$result"
    expect_exit 0
    cut -d, -f1-9,12 "$result/regress.csv" >"$result.errors"
}
# same_as FOLDER FOLDER: rows that differ are shown
same_as() {
    diff "$1.errors" "$2.errors" >stdout
    check "$2 has the bits of $1" $?
}

errors_of one --threads 1
[ "$(wc -l <one.errors)" -gt 60 ]
check "more than 60 rows" $?
for threads in 3 8; do
    errors_of threads-$threads --threads $threads
    same_as one threads-$threads
done

for core in Prescott Haswell; do
    OPENBLAS_CORETYPE=$core "$program" list parts --format csv | grep -q "^parts,blas,.*,$core," || {
        echo "left out: BLAS has no kernels of $core for this processor"
        continue
    }
    export OPENBLAS_CORETYPE=$core
    errors_of kernels-$core --threads 2
    unset OPENBLAS_CORETYPE
    same_as one kernels-$core
done

finish
