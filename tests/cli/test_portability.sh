#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_portability.sh PROGRAM SOURCE BUILD: scripts/test-portability on configurations that build nothing, and
# its judgement of what a program says about itself.
set -u
build=$(realpath "$3")
script=$(realpath "$2/scripts/test-portability")
. "$(dirname "$0")/checks.sh"

portability() {
    command="test-portability $*"
    "$script" "$@" >stdout 2>stderr </dev/null
    code=$?
}

portability --list
expect_exit 0
expect_quiet
for name in default kernels-Prescott isa-avx2 threads-8 clang optimisation-0 no-flint cuda netlib blis; do
    grep -q "^$name  *[a-z]" stdout
    check "has $name" $?
done
portability --list --only 'kernels-[HZ]*' --only blas
expect_exit 0
[ "$(cut -d ' ' -f 1 stdout | tr '\n' ' ')" = 'kernels-Haswell kernels-Zen netlib blis ' ]
check 'names and kinds choose' $?
portability --only nothing
expect_exit 2
expect_stderr 'no such configuration'
portability --steps ruler,rulers
expect_exit 2
expect_stderr "'rulers'"
portability --resum
expect_exit 2
expect_stderr '--resum'
portability --list --help
expect_exit 0
expect_stdout '--only PATTERN'

# What cannot be had is skipped, never passed: here no compiler is found.
mkdir empty
ln -s "$(python3 -c 'import sys; print(sys.executable)')" empty/python3
ln -s "$(command -v git)" "$(command -v env)" empty/
PATH=$folder/empty "$script" --only clang --steps ruler,claims --out p.csv --builds none >stdout 2>stderr
code=$?
command='test-portability without a compiler'
expect_exit 0
[ "$(grep -c ',clang,.*,skipped,0,0,0,0.0,clang is not installed$' p.csv)" -eq 2 ]
check 'both steps are skipped' $?
expect_no_file none

# OpenBLAS passes over names that it does not know: its kernels are then others than those asked for.
command='what the program has'
PYTHONDONTWRITEBYTECODE=1 python3 - "$script" "$build" >stdout 2>stderr <<'EOF'
import importlib.machinery, importlib.util, json, os, pathlib, subprocess, sys
loader = importlib.machinery.SourceFileLoader("portability", sys.argv[1])
p = importlib.util.module_from_spec(importlib.util.spec_from_loader("portability", loader))
loader.exec_module(p)
attnum = pathlib.Path(sys.argv[2]) / "experiments/attnum"


def parts(**variables):
    said = subprocess.run([attnum, "list", "parts", "--format", "json"], capture_output=True, check=True,
                          env=os.environ | variables).stdout
    return {part["name"]: part for part in json.loads(said)}


here = parts()
core = here["blas"]["parameters"]
ask = lambda **variables: p.Configuration("a", "kernels", "b", variables=variables)
if core:
    assert p.not_given(ask(OPENBLAS_CORETYPE=core), here) == ""
    unknown = parts(OPENBLAS_CORETYPE="Unheard")
    assert "uses its kernels for" in p.not_given(ask(OPENBLAS_CORETYPE="Unheard"), unknown)
assert "knows no instruction set" in p.not_given(ask(ATTNUM_ISA="avx9000"), here)
other = p.Configuration("netlib", "blas", "b", variables={"LD_LIBRARY_PATH": "/nowhere/blas:/nowhere/lapack"})
assert "the program takes /" in p.not_given(other, here)

# Rows stay until their step runs again; what another commit did, or what failed, is not left out with --resume.
p.commit = lambda: "abc1234"
table = p.Table("t.csv", p.configurations())
row = dict(kind="k", asked="", found="", passed=1, failed=0, skipped=0, seconds="1.0", detail="")
table.put(configuration="clang", step="ruler", result="passed", **row)
table.put(configuration="default", step="cli", result="failed", **row)
again = p.Table("t.csv", p.configurations())
assert again.has("clang", "ruler") and not again.has("default", "cli") and not again.has("clang", "cli")
assert [r["configuration"] for r in p.rows_of("t.csv")] == ["default", "clang"]
for commit in ("abc1235", "abc1234-dirty"):
    p.commit = lambda: commit
    assert not p.Table("t.csv", p.configurations()).has("clang", "ruler")

# Another machine's rows stay, and are not taken for this one's.
p.machine = lambda: "another"
other = p.Table("t.csv", p.configurations())
assert not other.has("clang", "ruler") and not other.find("clang", "ruler")
other.put(configuration="clang", step="ruler", result="failed", **row)
p.commit = lambda: "abc1236"
p.Table("t.csv", p.configurations()).put(configuration="cuda", step="cli", result="passed", **row)
assert {(r["machine"] == "another", r["commit"], r["configuration"]) for r in p.rows_of("t.csv")} == {
    (False, "abc1234", "default"), (False, "abc1234", "clang"), (True, "abc1234-dirty", "clang"), (True, "abc1236", "cuda")}
EOF
check 'is compared with what was asked for; rows are kept by commit' $?
finish
