#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kernels in Python against the cases that `attnum check --emit-case FOLDER` writes.

    attnum check --emit-case cases                     # every operator and variant, with gradients
    attnum check --emit-case cases --n 72,1000 --d 64 --heads 8 --kv-heads 2 --layout bnhd    # or others
    pytest bench/peers/test_cases.py                   # or: python3 bench/peers/test_cases.py
    ATTNUM_CASES=elsewhere pytest bench/peers/test_cases.py

Needs NumPy; with PyTorch the same formulas also run there, in f32 and bf16, and their gradients come from
autograd. Optional: nothing in the build or the tests of attnum needs it.

Your own kernel takes the place of one of the functions below: it gets a Case and the arrays q, k, v (batch x
heads x tokens x width, whatever the layout of the files; keys that heads share are repeated) and returns the
output; KERNELS says which cases it is for. Those with masks are left out: no kernel here has one. What it may differ is in
the case's `tolerance`, for the precision that it has: the relative error of each batch entry and head. What
fails here, `attnum check` explains: the arguments are in the case's `check`."""
import hashlib
import json
import os
import pathlib
import sys

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None
try:
    import pytest
except ImportError:
    pytest = None

FOLDER = pathlib.Path(os.environ.get("ATTNUM_CASES", "cases"))


class Case:
    """An entry of the manifest; arrays are read when they are asked for, and compared with their SHA-256."""

    def __init__(self, entry):
        self.kernel, self.name = entry["operator"] + "/" + entry["variant"], entry["name"]
        self.parameters, self.tolerance, self.files = entry["parameters"], entry["tolerance"], entry["files"]
        self.layout, self.sizes = entry["layout"], entry["sizes"]

    def array(self, name):
        path = FOLDER / self.files[name]["file"]
        if hashlib.sha256(path.read_bytes()).hexdigest() != self.files[name]["sha256"]:
            raise ValueError(f"{path}: not the file of the manifest")
        return numpy.load(path).astype(numpy.float64)

    def heads(self, name):
        """An array of tokens, values or outputs as batch x heads x tokens x width."""
        array, axes = self.array(name), self.layout.split(":")[0]
        if "h" not in axes: # side by side in the width
            count = int(self.layout.split(":")[1])
            array, axes = array.reshape(*array.shape[:-1], count, -1), axes[:-1] + "hd"
        if "b" not in axes:
            array, axes = array[None], "b" + axes
        return array.transpose([axes.index(axis) for axis in "bhnd"])

    def group(self):
        return self.sizes["heads"] // self.sizes["key_heads"]

    def inputs(self):
        q = self.heads("tokens")
        k = self.heads("keys").repeat(self.group(), 1) if "keys" in self.files else q
        return q, k, self.heads("values").repeat(self.group(), 1)

    def wanted(self, name, got):
        """The answer, and ours in its form: the sum over the heads that share keys."""
        if name in ("grad_keys", "grad_values") and self.group() > 1:
            got = got.reshape(got.shape[0], -1, self.group(), *got.shape[2:]).sum(2)
        return self.heads(name), got


def read_cases(kernel):
    if not (FOLDER / "manifest.json").exists():
        return []
    cases = map(Case, json.loads((FOLDER / "manifest.json").read_text())["cases"])
    return [case for case in cases
            if case.kernel == kernel and not case.sizes["causal"] and not case.sizes["padding"]]


# ---- Kernels: the formulas, over NumPy's or PyTorch's operations (xp) ----

def transpose(x):
    return x.swapaxes(-1, -2)


def total(x, axis):
    """The sum, its dimension kept; NumPy and PyTorch name that differently."""
    return x.sum(axis)[..., None] if axis == -1 else x.sum(axis)[..., None, :]


def softmax(xp, case, q, k, v):
    logits = q @ transpose(k) / q.shape[-1] ** 0.5
    weights = xp.exp(logits - logits.max()) # one maximum for all of them: numbers are small here
    return weights / total(weights, -1) @ v


def kernel_matrix(xp, case, x, y):
    return xp.exp(-case.parameters["kernel_scale"] * ((x[..., :, None, :] - y[..., None, :, :]) ** 2).sum(-1))


def gaussian(xp, case, q, k, v):
    return kernel_matrix(xp, case, q, k) @ v


def sima(xp, case, q, k, v):
    return q / total(abs(q), -2) @ (transpose(k / total(abs(k), -2)) @ v)


def xnorm(xp, case, q, k, v):
    gamma = like(xp, case.array("gamma"), q) # h x 1 x 1
    t = transpose(k) @ v
    return gamma ** 2 * (q / total(q * q, -1) ** 0.5) @ (t / total(t * t, -2) ** 0.5)


def soft_exact(xp, case, q, k, v):
    height, width = case.parameters["grid"]
    s = case.parameters["stride"]
    grid = q.reshape(*q.shape[:2], height, width, q.shape[-1])[:, :, :height // s * s, :width // s * s]
    grid = grid.reshape(*q.shape[:2], height // s, s, width // s, s, q.shape[-1])
    landmarks = grid.mean((3, 5)).reshape(*q.shape[:2], -1, q.shape[-1])
    p, a = kernel_matrix(xp, case, landmarks, q), kernel_matrix(xp, case, landmarks, landmarks)
    return transpose(p) @ xp.linalg.solve(a, p @ v)


KERNELS = {"softmax/attention": softmax, "gaussian/exact": gaussian, "sima/paper": sima, "xnorm/paper": xnorm,
           "soft/exact": soft_exact}


def like(xp, array, other):
    return array if xp is numpy else xp.from_numpy(array).to(other.dtype)


# ---- Judging ----

def judge(case, name, precision, got):
    """The largest relative error of a head, which must be below the tolerance; NaN is not."""
    (want, got), tolerance = case.wanted(name, got), case.tolerance[name][precision]
    axes = (-2, -1)
    error = (((got - want) ** 2).sum(axes) / (want ** 2).sum(axes)) ** 0.5
    if tolerance is None:
        return "skipped", error.max()
    return ("pass" if (error <= tolerance).all() else "FAIL"), error.max()


def run_numpy(case, kernel):
    for precision, dtype in (("f64", "f8"), ("f32", "f4")):
        got = kernel(numpy, case, *(x.astype(dtype) for x in case.inputs()))
        yield "output", precision, *judge(case, "output", precision, got.astype("f8"))


def run_torch(case, kernel):
    for precision in ("f64", "f32", "bf16"):
        dtype = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16}[precision]
        if precision == "bf16" and kernel is soft_exact: # no solver for bf16
            continue
        q, k, v = (torch.from_numpy(x.copy()).to(dtype).requires_grad_() for x in case.inputs())
        if "keys" not in case.files:
            k = q
        y = kernel(torch, case, q, k, v)
        y.backward(torch.from_numpy(case.heads("grad_output").copy()).to(dtype))
        results = {"output": y, "grad_tokens": q.grad, "grad_values": v.grad}
        if "keys" in case.files:
            results["grad_keys"] = k.grad
        for name, got in results.items():
            yield name, precision, *judge(case, name, precision, got.detach().double().numpy())


def run_all(run, name):
    return [(case.name, *row) for case in read_cases(name) for row in run(case, KERNELS[name])]


if pytest:
    def check(run, name):
        results = run_all(run, name)
        if not results:
            pytest.skip(f"no case {name} in {FOLDER}: attnum check --emit-case {FOLDER}")
        for case, result, precision, verdict, error in results:
            assert verdict != "FAIL", f"{case} {result} {precision}: relative error {error:.3g}"

    @pytest.mark.skipif(numpy is None, reason="needs NumPy")
    @pytest.mark.parametrize("name", KERNELS)
    def test_numpy(name):
        check(run_numpy, name)

    @pytest.mark.skipif(numpy is None or torch is None, reason="needs PyTorch")
    @pytest.mark.parametrize("name", KERNELS)
    def test_torch(name):
        check(run_torch, name)

    @pytest.mark.skipif(numpy is None, reason="needs NumPy")
    @pytest.mark.parametrize("name", KERNELS)
    def test_mistakes_fail(name):
        case = next(iter(read_cases(name)), None)
        if case is None:
            pytest.skip(f"no case {name} in {FOLDER}")
        want = case.heads("output")
        for wrong in (numpy.zeros_like(want), want[..., ::-1, :], want * (1 + 1e-3), want + numpy.nan):
            assert judge(case, "output", "f32", wrong)[0] == "FAIL"


def main():
    if numpy is None or not (FOLDER / "manifest.json").exists():
        print("needs NumPy" if numpy is None else f"{FOLDER}: no manifest.json", file=sys.stderr)
        return 77 if numpy is None else 3
    failed = 0
    for run in (run_numpy, run_torch) if torch else (run_numpy,):
        for name in KERNELS:
            for case, result, precision, verdict, error in run_all(run, name):
                print(f"{run.__name__[4:]} {case} {result} {precision}: {verdict}, relative error {error:.2g}")
                failed += verdict == "FAIL"
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
