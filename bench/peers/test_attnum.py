#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_attnum.py LIBRARY: attnum.py against what is known of the interface. Needs no package."""
import ctypes
import sys

import attnum


def numbers(count, step):
    """Of both signs, none twice in a row."""
    return [((i * step) % 17 - 8) / 8 for i in range(count)]


def sima(q, k, v, n, d):
    """SimA Eq. 1-2."""
    def normal(x):
        norms = [sum(abs(x[i * d + c]) for i in range(n)) for c in range(d)]
        return [x[i * d + c] / norms[c] for i in range(n) for c in range(d)]
    q, k = normal(q), normal(k)
    t = [[sum(k[i * d + a] * v[i * d + b] for i in range(n)) for b in range(d)] for a in range(d)]
    return [sum(q[i * d + a] * t[a][b] for a in range(d)) for i in range(n) for b in range(d)]


def array(values):
    return (ctypes.c_double * len(values))(*values)


def address(values):
    return ctypes.addressof(values)


def test_forward_and_backward(library):
    n, d = 6, 2
    context = library.context(threads=1)
    plan = context.plan(library.variant("sima", "paper", "f64"), (1, 1, n, d))
    q, k, v, dy = (numbers(n * d, step) for step in (5, 7, 11, 13))
    arrays, seed = [array(x) for x in (q, k, v)], array(dy)
    y, dq, dk, dv = (array([0.0] * n * d) for _ in range(4))
    assert plan.forward(*map(address, arrays), address(y))() == 0
    want = sima(q, k, v, n, d)
    # sums of n d terms of at most 1, rounded in f64: a mistake in the interface is no rounding
    assert max(abs(a - b) for a, b in zip(y, want)) <= n * d * 2**-50, (list(y), want)
    plan.backward(*map(address, arrays), address(seed), *map(address, (dq, dk, dv)))()
    # Y is linear in V, so <dV, V> = <dY, Y>
    left, right = sum(a * b for a, b in zip(dv, v)), sum(a * b for a, b in zip(dy, want))
    assert abs(left - right) <= n * d * 2**-50, (left, right)
    plan.close()
    context.close()


def test_errors_are_said(library):
    context = library.context()
    try:
        context.plan(library.variant("linformer", "projected", "f32"), (1, 1, 8, 4))
    except attnum.Error as error:
        assert "linformer" in str(error), error
    else:
        raise AssertionError("linformer without E was planned")
    context.close()


def test_description(library):
    desc = library.variant("soft", "paper", "f32")
    assert desc.inverse.iterations == 20 and desc.inverse.numerator == 2
    assert library.variant("soft", "code", "f64").inverse.ridge == 0.01
    assert library.variant("lsh", "reformer", "f32").lsh.self_logit == -5e4
    assert dict(library.operators())["softmax"] == ["attention", "causal"]


def test_wrong_layouts_are_refused(library):
    """The compiler's word is asked for, and heard."""
    class atn_attention_shape(ctypes.Structure):
        _fields_ = [("batch", ctypes.c_int64), ("heads", ctypes.c_int)]
    text = "".join(attnum.assertions({"atn_attention_shape": atn_attention_shape}))
    try:
        attnum.compiler(["-fsyntax-only"], text)
    except attnum.Error as error:
        assert "static assertion failed" in str(error), error
    else:
        raise AssertionError("a wrong layout was accepted")


def main():
    library = attnum.Library(sys.argv[1])
    for test in (test_description, test_forward_and_backward, test_errors_are_said,
                 test_wrong_layouts_are_refused):
        test(library)
        print(test.__name__)


if __name__ == "__main__":
    main()
