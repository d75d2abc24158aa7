#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_forms.py LIBRARY: what torch_peers.py times. The forms are attnum's operators, those that are not are told from
them, and compiled ones are compiled before the first repeat. Exits with 77 without PyTorch, NumPy or a C compiler."""
import contextlib
import io
import sys
import types

try:
    import torch
    import torch_operators
    import torch_peers
except ImportError as missing:
    print(missing)
    sys.exit(77)
import attnum

SHAPE = 1, 2, 196, 8  # m divides n, and so does twice the length of lsh's chunks
OPTIONS = types.SimpleNamespace(m=49, threads=[1], device="cpu", seconds=0, compiled=False)
COMPILING = types.SimpleNamespace(**{**vars(OPTIONS), "compiled": True})
WORKS = "forward", "training"
step = 0


def tokens():
    generator = torch.Generator().manual_seed(3)
    return {key: torch.randn(*SHAPE, generator=generator) for key in "qkv"}


class Clock:
    """Calls, but does not time; before each, something may change."""

    def __init__(self, change=lambda: None):
        self.change = change

    def time(self, work, calls):
        self.change()
        for _ in range(calls):
            work()
        return 1, 1


def sima_with(form, name="eager"):
    return torch_operators.Operator("sima", "paper", {"eager": torch_operators.sima, name: form})


def rows_of(library, operator, options, work="forward", clock=None, dtype="f32"):
    """The rows by their forms, and what is said on stderr."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        rows = list(torch_peers.run_case(library, clock or Clock(), operator, tokens(), dtype, work, options))
    return {row["form"]: row for row in rows}, said.getvalue()


def test_plain_forms(library):
    for operator in torch_operators.OPERATORS:
        for work in WORKS:
            _, errors = torch_peers.formula_errors(library, operator, tokens_f64(), OPTIONS, work, "cpu")
            assert list(errors) == list(operator.forms)
            for name, error in errors.items():
                # 20 Newton-Raphson steps magnify rounding a hundred times here; another formula is far from that
                assert error <= 1e-12, (operator.name, work, name, error)


def tokens_f64():
    return {key: value.double() for key, value in tokens().items()}


def test_compiled_forms(library):
    """In both types; linformer has einsums, a lean or fused form, and parameters."""
    for name in ("sima", "linformer"):
        operator = next(row for row in torch_operators.OPERATORS if row.name == name)
        names = list(operator.forms) + list(map(torch_peers.compiled_name, operator.forms))
        for work in WORKS:
            rows, said = rows_of(library, operator, COMPILING, work)
            assert list(rows) == ["attnum"] + ["torch-" + form for form in names], (list(rows), said)
            for form in names:
                row = rows["torch-" + form]
                assert row["seconds"] and row["formula_error"] <= 1e-14 and row["error"] <= 1e-5, row


def test_other_formulas(library):
    """One part in a thousand is another formula."""
    rows, said = rows_of(library, sima_with(lambda *inputs: 1.001 * torch_operators.sima(*inputs), "lean"), OPTIONS)
    assert "seconds" in rows["torch-eager"] and "seconds" not in rows["torch-lean"], rows
    assert abs(rows["torch-lean"]["formula_error"] - 1e-3) < 1e-6 and not said, (rows, said)


def with_compiler(compiler, call):
    """call() where torch.compile is another."""
    real = torch.compile
    torch.compile = compiler
    try:
        return call()
    finally:
        torch.compile = real


def test_wrong_in_one_type(library):
    """A compiled form that is right in f64 and wrong in f32 is not timed."""
    def compiler(form, dynamic):
        return lambda q, *others: (1.001 if q.dtype == torch.float32 else 1) * form(q, *others)
    rows, _ = with_compiler(compiler, lambda: rows_of(library, sima_with(torch_operators.sima_lean, "lean"), COMPILING))
    for form in ("compiled", "lean-compiled"):
        row = rows["torch-" + form]
        assert "seconds" not in row and row["formula_error"] < 1e-14 and row["error"] > 1e-4, row
    assert "seconds" in rows["torch-eager"] and "seconds" in rows["torch-lean"], rows


def test_wrong_attnum(library):
    """Neither attnum nor a form is timed where attnum is right in f64 and wrong in f32."""
    real = torch_peers.Case.attnum

    def wrong(case, work):
        call = real(case, work)

        def call_and_change():
            call()
            case.y.mul_(1.001 if case.dtype == "f32" else 1)
        return call_and_change
    torch_peers.Case.attnum = wrong
    try:
        for work in WORKS:
            rows, _ = rows_of(library, sima_with(torch_operators.sima_lean, "lean"), OPTIONS, work)
            assert list(rows) == ["attnum"] and "seconds" not in rows["attnum"], rows
            assert rows["attnum"]["error"] > 1e-4, rows
    finally:
        torch_peers.Case.attnum = real


def test_failing_compiler(library):
    """Said in one line, in f64 or only in f32; the other forms are timed."""
    def fails(*dtypes):
        def compiler(form, dynamic):
            def call(q, *others):
                if q.dtype in dtypes:
                    raise Exception("no such thing\nand more")
                return form(q, *others)
            return call
        return compiler
    for dtypes, where in (((torch.float64, torch.float32), "f64"), ((torch.float32,), "f32")):
        rows, said = with_compiler(fails(*dtypes), lambda: rows_of(
            library, sima_with(torch_operators.sima_lean, "lean"), COMPILING))
        assert list(rows) == ["attnum", "torch-eager", "torch-lean"], rows
        assert said.splitlines() == [f"sima {where} forward n=196: torch-{form} fails and is not timed: no such thing"
                                     for form in ("compiled", "lean-compiled")], said
    try:  # a plain form that fails is no matter of the compiler
        rows_of(library, sima_with(fails(torch.float64)(torch_operators.sima, False)), OPTIONS)
    except Exception as error:
        assert "no such thing" in str(error), error
    else:
        raise AssertionError("a form that fails was left out")


def scaled(q, k, v, p):
    return torch_operators.sima(q, k, v, p) * (step + 1) / (step + 1)


def test_recompilation(library):
    """What is compiled for one step is compiled again for the next, which may not be within the repeats."""
    def change():
        global step
        step += 1
    rows, _ = rows_of(library, sima_with(scaled), COMPILING)
    assert "seconds" in rows["torch-compiled"], rows
    try:
        rows_of(library, sima_with(scaled), COMPILING, clock=Clock(change))
    except RuntimeError as error:
        assert "recompil" in str(error), error
    else:
        raise AssertionError("a recompilation was timed")


def test_no_eager_in_place_of_compiled(library):
    """PyTorch compiles a function only so often, and then, silently, runs it as it is."""
    def rows():
        with torch._dynamo.config.patch(recompile_limit=1):
            return rows_of(library, sima_with(torch_operators.sima_lean, "lean"), COMPILING)
    found, said = rows()
    assert "torch-compiled" in found and "torch-lean-compiled" in found and not said, said
    real, torch._dynamo.reset = torch._dynamo.reset, lambda: None
    try:
        found, said = rows()
    finally:
        torch._dynamo.reset = real
    assert "torch-compiled" not in found and "torch-compiled fails" in said, (found, said)


def main():
    try:
        library = attnum.Library(sys.argv[1])
    except FileNotFoundError as error:
        print(f"no C compiler: {error}")
        return 77
    for test in (test_plain_forms, test_compiled_forms, test_other_formulas, test_wrong_in_one_type, test_wrong_attnum,
                 test_failing_compiler, test_recompilation, test_no_eager_in_place_of_compiled):
        test(library)
        print(test.__name__, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
