#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_capabilities.sh CAPABILITIES: which devices the build finds, by an nvidia-smi made for it.
set -u
capabilities=$(realpath "$1")
folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
failures=0

# expect WANTED NAME SCRIPT: what is found where nvidia-smi is SCRIPT.
expect() {
    printf '#!/bin/sh\n%s\n' "$3" >"$folder/nvidia-smi"
    chmod +x "$folder/nvidia-smi"
    found=$(PATH=$folder:$PATH "$capabilities")
    if [ "$found" = "$1" ]; then
        echo "ok    $2: '$found'"
    else
        echo "FAIL  $2: '$found', expected '$1'"
        failures=$((failures + 1))
    fi
}

expect '80 90' 'several devices' 'echo 9.0; echo 8.0; echo 9.0'
expect 120 'two digits' 'echo 12.0'
expect unknown 'a driver that knows no compute_cap' '[ "$1" = -L ] && echo "GPU 0: A (UUID: B)"'
expect unknown 'a device without one' '[ "$1" = -L ] && echo "GPU 0: A (UUID: B)" || echo "[N/A]"'
# Files of devices count, too, where there are any.
none=
! ls /dev/nvidia[0-9]* >/dev/null 2>&1 || none=unknown
expect "$none" 'no driver' 'echo "NVIDIA-SMI has failed because it could not talk to the driver"; exit 9'
[ "$failures" -eq 0 ]
