# SPDX-License-Identifier: BSD-3-Clause
"""Is a kernel right? The program's `attnum check`, on arrays."""
from __future__ import annotations

import functools
import html
import json
import os
import pathlib
import re
import shutil
import tempfile
import weakref
from typing import Any

import numpy as np

from . import _program
from ._library import ArgumentError, interface

# Names that attention's groups of options have among the program's parameters, where those differ.
_RENAMED = {"sampling": {"kind": "sampling", "scale": "sampling_scale", "ridge": "sampling_ridge", "weights": "conv"},
            "inverse": {"method": "inverse"}}
# The program's options whose arguments here have other names.
_ARGUMENTS = {"operator": "op", "tokens": "q", "keys": "k", "values": "v", "grad-output": "dout", "mask": "key_mask",
              "gradient": "gradients"}


def _refused(done):
    """The program's sentence as an error, in which options and files have the names of this module's arguments."""
    text = (done.stderr or done.stdout).strip().removeprefix("attnum: ")
    text = re.sub(r"^(?:\S*/)?([\w-]+)\.npy:", lambda found: found[1].replace("-", "_") + ":", text)
    text = re.sub(r"(unknown option|not an option here); expected one of .*", r"\1", text)
    text = text.replace("--param ", "")
    return ArgumentError(re.sub(r"--([a-z]+(?:-[a-z]+)*)",
                                lambda found: _ARGUMENTS.get(found[1], found[1].replace("-", "_")), text))


class _Folder:
    """A temporary folder that goes when nobody refers to it any more."""

    def __init__(self):
        self.name = tempfile.mkdtemp(prefix="attnum-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


class CheckResult:
    """What `attnum check` says of a result.

    verdict   "pass", "marginal", "FAIL", or "skipped": nothing can be said
    ok        whether it passes (pass or marginal); also the object's truth
    heads     a dict per head and result (output, gradients): batch, head, verdict, ratio (of the first test that
              FAILs, or the largest, over what passes), test (which), error |yours - wanted|_F / |wanted|_F, expected
              (the most that rounding may do), reachable (what good kernels in that type reach), row, col, yours,
              wanted (the worst element), reason
    mistakes  dicts of what a result that FAILs could be instead: mistake, error_left, explains
    results   dicts per result: verdict, answer ("exact" or "baseline"), why
    summary   sizes, operator, version
    report    the whole as text, with maps of what is wrong"""

    def __init__(self, folder, arguments, tables):
        self._folder, self._arguments = folder, arguments
        self.heads, self.mistakes = tables["heads"], tables["mistakes"]
        self.results, (self.summary,) = tables["results"], tables["summary"]
        self.verdict = self.summary["verdict"]
        self.ok = self.summary["exit_code"] == 0

    def __bool__(self) -> bool:
        return self.ok

    @property
    def ratio(self) -> float:
        """The largest ratio of a head: up to 1 passes, from 1.5 on it FAILs, and inf is that of a head that FAILs
        without one, as with NaN in it; nan: nothing can be said."""
        return max((head["ratio"] if head["ratio"] is not None else float("inf") for head in self.heads
                    if head["ratio"] is not None or head["verdict"] == "FAIL"), default=float("nan"))

    @property
    def reachable(self) -> float:
        """The largest error that good kernels reach in a head."""
        return max((head["reachable"] for head in self.heads if head["reachable"] is not None), default=float("nan"))

    @property
    def diagnosis(self) -> list[str]:
        """Mistakes that explain the result."""
        return [found["mistake"] for found in self.mistakes if found["explains"]]

    @property
    def where(self) -> list[dict[str, Any]]:
        """The heads that FAIL, each with its worst element."""
        return [head for head in self.heads if head["verdict"] == "FAIL"]

    @functools.cached_property
    def _texts(self):
        """The program's report and page: it judges once more, as it writes either tables or text."""
        page = pathlib.Path(self._folder) / "report.html"
        page.unlink(missing_ok=True)
        done = _program.run([*self._arguments, "--html", page.name], cwd=self._folder)
        return done.stdout.partition("\n")[2].rpartition("→")[0].rstrip() + "\n", page.read_text()

    @property
    def report(self) -> str:
        return self._texts[0]

    def assert_ok(self) -> CheckResult:
        """Raises AssertionError, with the report, unless the result passes."""
        __tracebackhide__ = True
        if not self.ok:
            raise AssertionError(f"attnum check: {self.verdict}\n{self.report}")
        return self

    def __repr__(self) -> str:
        s = self.summary
        explained = f"; {self.diagnosis[0]}" if self.diagnosis else ""
        return (f"<attnum.check {s['operator']}/{s['variant']} in {s['dtype']}: {self.verdict}, ratio {self.ratio:.3g} "
                f"of {len(self.heads)} heads{explained}>")

    def _repr_html_(self) -> str:
        return ('<iframe style="width: 100%; height: 40em; border: 0" '
                f'srcdoc="{html.escape(self._texts[1])}"></iframe>')


def _judge(folder, arguments, keep):
    """Runs the program in a folder; `keep` lives as long as the result."""
    done = _program.run([*arguments, "--format", "json"], cwd=folder)
    if done.returncode not in (0, 1, 77) or not done.stdout:
        raise _refused(done)
    result = CheckResult(folder, arguments, json.loads(done.stdout, object_hook=_finite)["check"])
    result._keep = keep
    return result


def _finite(row):
    """JSON has no numbers for these."""
    return {key: float(value) if value in ("nan", "-nan", "inf", "-inf") else value for key, value in row.items()}


def _is_bfloat16(x):
    return str(getattr(x, "dtype", "")).endswith("bfloat16")


def _claimed(dtype, output, gradients):
    """bf16, which .npy cannot hold, where nothing else is claimed and the results are in it."""
    types = {_is_bfloat16(x) for x in (output, *(gradients or {}).values()) if x is not None}
    if dtype is None and len(types) > 1:
        raise ArgumentError("dtype: missing; the results are of several types")
    return "bf16" if dtype is None and True in types else dtype


def _array(name, x):
    """What .npy holds and the program reads: little-endian floating-point numbers of 2, 4 or 8 bytes. Other real
    numbers become float32 if that holds them, as bfloat16, else float64. PyTorch's tensors may be anywhere."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = x.resolve_neg() if hasattr(x, "resolve_neg") else x
        x = x.float() if _is_bfloat16(x) else x
    if not _is_bfloat16(x):
        interface(name, x)
    array = np.asarray(x if hasattr(x, "__array_interface__") or not hasattr(x, "__dlpack__") else np.from_dlpack(x))
    kind, size = array.dtype.kind, array.dtype.itemsize
    narrow = kind == "V" and array.dtype.names is None and str(array.dtype)[0] not in "|V"  # ml_dtypes
    if _is_bfloat16(array) or narrow or kind == "b" or (kind in "iu" and size < 4):
        return array.astype(np.float32)
    if kind not in "fiu":
        raise ArgumentError(f"{name}: dtype {array.dtype}, expected real numbers")
    return array.astype(f"<f{size}" if kind == "f" and size in (2, 4, 8) else "<f8", copy=False)


def _save(folder, name, x):
    file = name.replace("_", "-") + ".npy"
    np.save(pathlib.Path(folder) / file, _array(name, x))
    return file


def _parameters(options):
    """(name, value) of the program's parameters, from attention's options."""
    for name, value in options.items():
        if name in _RENAMED and isinstance(value, dict):
            for key, inner in value.items():
                yield _RENAMED[name].get(key, key), inner
        else:
            yield name, value


def check(output: Any = None, *, op: str, q: Any, k: Any = None, v: Any, dtype: str | None = None,
          gradients: dict[str, Any] | None = None, dout: Any = None, variant: str | None = None,
          layout: str | None = None, key_mask: Any = None, query_mask: Any = None, landmarks: Any = None,
          scale: float | str | None = None, distance: str | None = None, reference: str = "auto",
          **options: Any) -> CheckResult:
    """Judges what a kernel computed against the exact answer, in the precision that it claims.

        attnum.check(y, op="softpp/code", q=q, v=v, dtype="bf16", sampling={"kind": "pool", "height": 28, "width": 28,
                                                                           "stride": 4}).assert_ok()

    output      b x h x n x d_v, h x n x d_v or n x d_v; with gradients it may be left out
    op          an operator or OPERATOR/VARIANT
    q, k, v     the inputs (k None: K = Q; k and v may have fewer heads, which q's share)
    dtype       "f64", "f32", "tf32", "bf16", "f16": what the kernel claims; default: the output's type
    gradients   {"q": dQ, "k": dK, "v": dV, "gamma": ...}, of the scalar with the derivative dout by Y
    layout      "bhnd", "bnhd", ... (`attnum list layouts`)
    key_mask, query_mask
                b x n_k and b x n: which tokens are valid
    landmarks   soft, softpp: L itself instead of a sampling
    reference   "auto": exact where that takes seconds, "exact", "f64"
    options     of the operator, as for attention: sampling, inverse, epsilon, ... (`attnum check --operator OP --help`)

    The judge is the program's: `attnum check` in the documentation says what passes. Arrays go to it as .npy files in a
    temporary folder, which lives as long as the result."""
    folder = _Folder()
    arguments = ["check", "--operator", op if variant is None else f"{op}/{variant}", "--reference", reference]
    dtype = _claimed(dtype, output, gradients)
    names = {"q": "tokens", "k": "keys", "v": "values"}
    for name, option, x in (("q", "tokens", q), ("k", "keys", k), ("v", "values", v), ("output", "output", output),
                            ("dout", "grad-output", dout), ("key_mask", "mask", key_mask),
                            ("query_mask", "query-mask", query_mask), ("landmarks", "landmarks", landmarks)):
        if x is not None:
            arguments += [f"--{option}", _save(folder.name, name, x)]
    for option, value in (("dtype", dtype), ("layout", layout), ("scale", scale), ("distance", distance)):
        if value is not None:
            arguments += [f"--{option}", str(value)]
    for name, gradient in (gradients or {}).items():
        arguments += ["--gradient", f"{names.get(name, name)}={_save(folder.name, 'grad_' + name, gradient)}"]
    grid = {}
    for name, value in _parameters(options):
        if name in ("height", "width"):
            grid[name] = value
        elif isinstance(value, (bool, np.bool_)):
            arguments += ["--param", f"{name}={str(bool(value)).lower()}"]
        elif isinstance(value, (str, int, float, np.number)):
            arguments += ["--param", f"{name}={value!s}"]
        else:
            arguments += ["--param", f"{name}={_save(folder.name, name, value if hasattr(value, 'detach') else np.asarray(value))}"]
    if grid:
        arguments += ["--grid", f"{grid.get('height', 0)}x{grid.get('width', 0)}"]
    return _judge(folder.name, arguments, folder)


class Case:
    """A problem with its answers, from `attnum check --emit-case`.

    name, operator, variant, parameters, sizes, layout, seed, dtype, tolerance
              as in the manifest
    q, k, v, dout, output, and array("grad_tokens"), ...
              arrays in the case's layout; k is None where K = Q. The inputs are numbers that `dtype` holds."""

    def __init__(self, folder, entry, keep):
        self._folder, self._entry, self._keep = folder, entry, keep

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._entry:
            raise AttributeError(name)
        return self._entry[name]

    def array(self, name: str) -> Any:
        """tokens, keys, values, output, grad_output, grad_tokens, a parameter, ...; None where there is none."""
        file = self._entry["files"].get(name)
        return None if file is None else np.load(pathlib.Path(self._folder) / file["file"])

    q = property(lambda self: self.array("tokens"))
    k = property(lambda self: self.array("keys"))
    v = property(lambda self: self.array("values"))
    dout = property(lambda self: self.array("grad_output"))
    output = property(lambda self: self.array("output"))

    def check(self, output: Any = None, *, dtype: str | None = None,
              gradients: dict[str, Any] | None = None) -> CheckResult:
        """Judges an output of this case, and gradients {"q": ..., "k": ..., "v": ...}; dtype as for `check`."""
        mine = _Folder()
        dtype = _claimed(dtype, output, gradients)
        arguments = ["check"]
        pairs = self._entry["check"]
        for option, value in zip(pairs[::2], pairs[1::2]):
            if option not in ("--output", "--gradient") and (option != "--grad-output" or gradients):
                arguments += [option, value]
        given = {"--output": {"output": output} if output is not None else {}, "--gradient": gradients or {}}
        names = {"q": "tokens", "k": "keys", "v": "values"}
        for option, arrays in given.items():
            for name, x in arrays.items():
                file = f"{mine.name}/{_save(mine.name, name, x)}"
                arguments += [option, file if option == "--output" else f"{names.get(name, name)}={file}"]
        if dtype is not None:
            arguments += ["--dtype", dtype]
        return _judge(self._folder, arguments, (mine, self._keep))

    def __repr__(self) -> str:
        return f"<attnum.Case {self.name}, seed {self.seed}>"


def cases(*operators: str, **options: Any) -> list[Case]:
    """Problems with answers for OPERATOR or OPERATOR/VARIANT (none: all of them): every combination of n, d, batch, m,
    seed and masks, each a value or a list, of heads, kv_heads, value_width, key_tokens, in a layout, with inputs that a
    dtype holds (`attnum check --help`).

        for case in attnum.cases("sima/code", n=[72, 1000], d=64, heads=4, kv_heads=2, layout="bnhd"):
            case.check(my_kernel(case.q, case.k, case.v), dtype="bf16").assert_ok()"""
    folder = _Folder()
    arguments = ["check", "--emit-case", "cases"] + [word for op in operators for word in ("--operator", op)]
    for name, value in options.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        arguments += ["--" + name.replace("_", "-"), ",".join(str(v) for v in values)]
    done = _program.run(arguments, cwd=folder.name)
    if done.returncode != 0:
        raise _refused(done)
    inside = os.path.join(folder.name, "cases")
    with open(os.path.join(inside, "manifest.json"), encoding="utf-8") as file:
        return [Case(inside, entry, folder) for entry in json.load(file)["cases"]]
