#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compile.sh OBJECT LOG DEPFILE NVCC ARGUMENT...: compiles a .cu file and keeps what the compiler
# says about each kernel's registers; anything else it says is shown. As everywhere else products
# and sums are rounded apart (-fmad=false); those to be fused say so (real_fma).
set -u
object=$1 log=$2 depfile=$3
shift 3
"$@" -c -o "$object" -MD -MF "$depfile" -std=c++17 -O3 -fmad=false -D_POSIX_C_SOURCE=200809L \
    -Xptxas=-v -Xcompiler=-fPIC,-Wall,-Wextra,-fno-exceptions >"$log" 2>&1
status=$?
grep -av '^ptxas info\|bytes stack frame' "$log" >&2
exit $status
