#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# capabilities.sh: the compute capabilities of this machine's CUDA devices, each once, as nvcc writes them
# (80 90); "unknown" if there are devices but nvidia-smi does not report them; nothing without a device.
set -u
found=$(timeout 20 nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    sed -n 's/^ *\([0-9]\{1,2\}\)\.\([0-9]\) *$/\1\2/p' | sort -nu)
if [ -n "$found" ]; then
    echo $found
elif nvidia-smi -L 2>/dev/null | grep -q '^GPU ' || ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
    echo unknown
fi
