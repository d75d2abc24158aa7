#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run_gpu.sh ATTNUM PROGRAM SOURCE...: runs a Criterion program whose tests need a CUDA device; 77
# without one. Another process looks for the device: after a call of CUDA's a process cannot fork
# and go on using it, and Criterion forks for each test.
set -u
attnum=$1
shift
devices=$("$attnum" list devices --format csv) || exit 3
case $devices in
*devices,cuda,none*)
    echo "$devices" | sed -n 's/^devices,cuda,none,*/no CUDA device: /p'
    exit 77
    ;;
esac
# every 31st float: seconds of the host's long double
ATTNUM_EXP_STEP=${ATTNUM_EXP_STEP:-31} ATTNUM_TEST_DEVICE=cuda exec "$(dirname "$0")/../run_suite.sh" "$@"
