#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_contraction.sh COMPILE NVCC: whether kernels, compiled as the library's are, keep products and
# sums apart unless the source has them fused.
set -u
compile=$(realpath "$1")
nvcc=$2
[ -n "$nvcc" ] || exit 77
folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 3

cat >apart.cu <<'CUDA'
template <class T> static __device__ T apart(T a, T b, T c) { return a * b + c; }
extern "C" __global__ void kernel(float *x, double *y)
{
    x[0] = apart(x[1], x[2], x[3]);
    y[0] = apart(y[1], y[2], y[3]);
}
CUDA
sed 's/return a \* b + c/return fma(a, b, c)/' apart.cu >fused.cu

# fusions NAME: the fused operations that are compiled for NAME.cu.
fusions() {
    "$compile" "$1.o" "$1.log" "$1.d" "$nvcc" --keep --keep-dir "$folder" \
        -gencode=arch=compute_80,code=compute_80 "$1.cu" || exit 3
    grep -c '^[[:space:]]*fma\.' "$1.ptx"
}

apart=$(fusions apart)
fused=$(fusions fused)
echo "a * b + c: $apart fused operations, fma(a, b, c): $fused"
[ "$apart" -eq 0 ] && [ "$fused" -eq 2 ]
