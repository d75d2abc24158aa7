#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compile.sh OBJECT LOG DEPFILE NVCC ARGUMENT...: compiles a .cu file and keeps the compiler's
# messages about each kernel's registers; other messages are shown. As everywhere else products
# and sums are rounded separately (-fmad=false); code that needs fusion calls real_fma.
set -u
object=$1 log=$2 depfile=$3
shift 3
"$@" -c -o "$object" -MD -MF "$depfile" -std=c++17 -O3 -fmad=false -D_POSIX_C_SOURCE=200809L \
    -Xptxas=-v -Xcompiler=-fPIC,-Wall,-Wextra,-fno-exceptions >"$log" 2>&1
status=$?
grep -av '^ptxas info\|bytes stack frame' "$log" >&2
exit $status
