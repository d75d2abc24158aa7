#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_peers.py LIBRARY: attnum.py against what is known of the interface, turns.py against works whose times
are known. Needs no package;
without a C compiler it is skipped (77)."""
import ctypes
import sys

import attnum
import turns


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
    h, n, d = 2, 6, 2
    context = library.context(threads=1)
    plan = context.plan(library.variant("sima", "paper", "f64"), (1, h, n, d))
    q, k, v, dy = (numbers(h * n * d, step) for step in (5, 7, 11, 13))
    arrays, seed = [array(x) for x in (q, k, v)], array(dy)
    y, dq, dk, dv = (array([0.0] * h * n * d) for _ in range(4))
    assert plan.forward(*map(address, arrays), address(y))() == 0
    want = [y for i in range(h) for y in sima(*(x[i * n * d:(i + 1) * n * d] for x in (q, k, v)), n, d)]
    # sums of n d terms of at most 1, rounded in f64: a mistake in the interface is no rounding
    assert max(abs(a - b) for a, b in zip(y, want)) <= n * d * 2**-50, (list(y), want)
    plan.backward(*map(address, arrays), address(seed), *map(address, (dq, dk, dv)), y=address(y))()
    # Y is linear in V, so <dV, V> = <dY, Y>
    left, right = sum(a * b for a, b in zip(dv, v)), sum(a * b for a, b in zip(dy, want))
    assert abs(left - right) <= h * n * d * 2**-50, (left, right)
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
    assert library.constants["ATN_IS_COUPLED"] == 16 and library.constants["ATN_ERR_VALUE"] == -6
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


class FalseClock:
    """A call takes what the work returns; from each call of the first work on a tenth longer."""

    def __init__(self):
        self.slower = 1

    def time(self, work, calls):
        seconds = work() * self.slower
        self.slower *= 1.1 if work() == 1 else 1
        return seconds, 2 * seconds


def measure_beside(shares, works):
    """turns.measure on a false clock, where others take these shares of the machine; how often it looked."""
    class Ticks(turns.Ticks):
        def shares(self):
            looks.append(1)
            return shares
    looks, real = [], turns.Ticks
    turns.Ticks = Ticks
    try:
        return *turns.measure(FalseClock(), works, 0), len(looks)
    finally:
        turns.Ticks = real


def test_turns():
    quiet = {"foreign_share": 0.015, "steal_share": 0.005}
    times, calls, machine, looks = measure_beside(quiet, [lambda: 1, lambda: 3, lambda: 1e-4])
    first, second, third = turns.rows_of(["a", "b", "c"], times, calls)
    assert calls == [1, 1, 41], calls  # 5 ms in calls of the last warm-up's 1e-4 * 1.1^2 s
    assert first["repeats"] == turns.LEAST and first["cpu_seconds"] == 2 * first["seconds"]
    assert first["seconds_low"] < first["seconds"] < first["seconds_high"] and "ratio" not in first
    for row, ratio in ((second, 3 * 1.1), (third, 1e-4 * 1.1)):  # neighbours, though all grow
        for key in ("ratio_low", "ratio", "ratio_high"):
            assert abs(row[key] / ratio - 1) < 1e-12, row
    assert looks == 1 and machine["dirty"] == "no", machine


def test_dirty_is_repeated():
    _, _, machine, looks = measure_beside({"foreign_share": 0.015, "steal_share": 0.01}, [lambda: 1])
    assert looks == 2 and machine["dirty"] == "yes", machine


def test_quartiles():
    rows = turns.rows_of("ab", [[(1, 7)] * 5, [(value, 7) for value in (5, 1, 4, 2, 3)]], [1, 1])
    _, row = rows
    assert [row[key] for key in ("seconds_low", "seconds", "seconds_high")] == [2, 3, 4], row
    assert [row[key] for key in ("ratio_low", "ratio", "ratio_high")] == [2, 3, 4], row


def test_crossover():
    def rows(*lows):
        return [{"form": "x", "n": 2**i, "ratio_low": low} for i, low in enumerate(lows)] + [{"form": "y", "n": 64}]
    assert turns.crossover(rows(0.5, 0.9, 1.2, 3), "x") == 4
    assert turns.crossover(rows(2, 0.9, 1.2, 3), "x") == 4  # not from 1 on
    assert turns.crossover(rows(0.5, 0.9, 1.2, float("nan")), "x") is None
    assert turns.crossover(rows(0.5, 0.9, 1.0), "x") is None


def main():
    try:
        library = attnum.Library(sys.argv[1])
    except FileNotFoundError as error:
        print(f"no C compiler: {error}")
        return 77
    for test in (test_description, test_forward_and_backward, test_errors_are_said,
                 test_wrong_layouts_are_refused):
        test(library)
        print(test.__name__)
    for test in (test_turns, test_dirty_is_repeated, test_quartiles, test_crossover):
        test()
        print(test.__name__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
