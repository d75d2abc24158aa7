#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_configure.sh SOURCE: `meson setup` refuses machines and libraries that attnum does not support, and
# says what it needs instead; and a wheel carries every file that an installed program reads.
set -u
source=$1
folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
failures=0

# machine NAME CPU_FAMILY ENDIAN FLAG: a cross file; programs for that machine cannot run here.
machine() {
    cat >"$folder/$1.ini" <<END
[binaries]
c = 'cc'
pkgconfig = 'pkg-config'
[properties]
needs_exe_wrapper = true
[built-in options]
c_args = [$4]
[host_machine]
system = 'linux'
cpu_family = '$2'
cpu = '$2'
endian = '$3'
END
}

# refused NAME TEXT ARGUMENT...: meson setup fails, and its error has the text.
refused() {
    name=$1
    text=$2
    shift 2
    meson setup "$folder/$name" "$source" -Dcuda=disabled "$@" >"$folder/log" 2>&1
    code=$?
    if [ "$code" -ne 0 ] && grep 'ERROR:' "$folder/log" | grep -qF "attnum needs $text"; then
        echo "ok    $name: $(grep -o 'attnum needs.*' "$folder/log" | head -n 1)"
    else
        echo "FAIL  $name: exit code $code"
        tail -n 5 "$folder/log" | sed 's/^/      /'
        failures=$((failures + 1))
    fi
}

machine big s390x big ''
refused big 'a little-endian machine' --cross-file "$folder/big.ini"
echo 'int one;' >"$folder/one.c"
if cc -m32 -c "$folder/one.c" -o "$folder/one.o" 2>/dev/null; then
    machine narrow x86 little "'-m32'"
    refused narrow 'a 64-bit machine' --cross-file "$folder/narrow.ini"
fi
# What their headers define where they are built that way.
refused blas 'a BLAS whose integers are int' -Dc_args=-DOPENBLAS_USE64BITINT
refused lapacke 'a LAPACKE whose integers are int' -Dc_args=-DLAPACK_ILP64

# The options are pyproject.toml's. What is installed without a tag goes next to the program in a wheel.
if /usr/bin/python3 -c 'import cffi, os, sys, sysconfig
sys.exit(sys.version_info < (3, 11) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null; then
    PATH=/usr/bin:$PATH meson setup "$folder/wheel" "$source" -Dcuda=disabled -Dpython=enabled -Dprogram=enabled \
        -Ddefault_library=static -Dtests=disabled -Dcertify=disabled >"$folder/log" 2>&1 || cat "$folder/log"
    meson introspect --install-plan "$folder/wheel" >"$folder/plan.json"
    if /usr/bin/python3 - "$folder/plan.json" <<'END'
import json, sys
installed, carried = set(), set()
plan = json.load(open(sys.argv[1]))
for row in [row for kind in ("data", "install_subdirs") for row in plan[kind].values()]:
    for names, folder in ((installed, "/share/attnum/"), (carried, "/attnum/program/")):
        _, found, name = row["destination"].partition(folder)
        if found:
            names.add(name)
sys.exit(f"not in a wheel: {sorted(installed - carried)}" if installed - carried or not installed else 0)
END
    then
        echo 'ok    wheel: it carries what the installed program reads'
    else
        echo 'FAIL  wheel'
        failures=$((failures + 1))
    fi
fi
echo "$failures checks failed"
[ "$failures" -eq 0 ]
