# SPDX-License-Identifier: BSD-3-Clause
"""Calls of operators: right by the program's judgement, on any view of memory, and what is said of bad input."""
import math
import subprocess
import sys
import threading
import unittest

import attnum
import numpy as np
from attnum._library import Context, ffi, fields_of, lib

N, D = 36, 8
POOL = {"kind": "pool", "height": 6, "width": 6, "stride": 2}
SOFT = {"sampling": POOL, "inverse": "cholesky"}


def tokens(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape or (2, 3, N, D)).astype(dtype)


Q, K, V = (tokens(seed) for seed in (1, 2, 3))


def exported(array, *names):
    """An object with these attributes of an array and no other protocol."""
    def attribute(value):
        return (lambda self, **options: value(**options)) if callable(value) else value
    return type("Exported", (), {"memory": array} | {name: attribute(getattr(array, name)) for name in names})()


def options_of(case):
    """What attention is given for a case: its parameters by their places in the description."""
    own = fields_of(getattr(ffi.new("atn_attention_desc *"), case.operator)) if case.operator not in (
        "soft", "softpp", "gaussian", "softmax", "efficient") else {}
    arrays = {name: case.array(name) for name in case._entry["files"]
              if name not in ("tokens", "keys", "values", "output") and not name.startswith("grad")}
    given = {**case.parameters, **arrays}
    options = {name: value for name, value in given.items() if name in own}
    if given.get("weighting") == "2d":
        options["height"] = options["width"] = math.isqrt(case.sizes["tokens"])
    if case.operator in ("soft", "softpp"):
        inverse = fields_of(ffi.new("atn_inverse_desc *"))
        options["sampling"] = POOL | {"height": given["grid"][0], "width": given["grid"][1], "stride": given["stride"]}
        options["inverse"] = {"method": given["inverse"]} | {name: value for name, value in given.items()
                                                             if name in inverse}
    return options


class Judged(unittest.TestCase):
    def test_every_operator(self):
        seen = set()
        for dtype in ("f32", "f64"):
            for case in attnum.cases(n=16, d=4, dtype=dtype):
                with self.subTest(case=case.name, dtype=dtype):
                    q, k, v, dy = (x if x is None else x.astype(dtype.replace("f", "float"))
                                   for x in (case.q, case.k, case.v, case.dout))
                    plan = attnum.Plan.of(case.operator, q, k, v, variant=case.variant, **options_of(case))
                    y = plan(q, k, v)
                    self.assertGreaterEqual(plan.status, 0)
                    gradients = plan.backward(dy, q, k, v)
                    self.assertEqual(set(gradients), {"q", "v"} if k is None else {"q", "k", "v"})
                    result = case.check(y, gradients=gradients, dtype=dtype).assert_ok()
                    self.assertEqual(len(result.results), 1 + len(gradients))
                    seen.add((case.operator, case.variant, dtype))
        self.assertEqual(seen, {(name, variant, dtype) for name, info in attnum.operators().items()
                                for variant in info["variants"] for dtype in ("f32", "f64")})

    def test_backward_after_forward(self):
        plan = attnum.Plan.of("sima", Q, K, V)
        alone = plan.backward(V, Q, K, V)
        plan(Q, K, V)
        both = plan.backward(V, Q, K, V, after_forward=True)
        for name in "qkv":
            np.testing.assert_array_equal(both[name], alone[name])
        plan(Q, K, V)
        kept = plan.backward(V, Q, K, 2 * V, after_forward=True)  # dQ is of the K^T V that forward summed
        np.testing.assert_array_equal(kept["q"], alone["q"])
        self.assertFalse((plan.backward(V, Q, K, 2 * V)["q"] == alone["q"]).all())

    def test_backward_reads_y(self):
        q, k, v = (np.random.default_rng(i).standard_normal((1, 1, 300, 4)) for i in range(3))  # more than 128 keys
        plan = attnum.Plan.of("softmax", q, k, v)
        alone, y = plan.backward(v, q, k, v), plan(q, k, v)
        both = plan.backward(v, q, k, v, after_forward=True, y=y)
        for name in "qkv":
            np.testing.assert_array_equal(both[name], alone[name])
        plan(q, k, v)
        other = plan.backward(v, q, k, v, after_forward=True, y=2 * y)["q"]  # dY.Y is twice what it should be
        self.assertFalse((other == alone["q"]).any())

    def test_bf16_needs_an_array_type(self):
        with self.assertRaisesRegex(attnum.ArgumentError, "bf16.*NumPy"):
            attnum.Plan("softmax", N, 4, dtype="bf16")

    def test_gradient_of_a_parameter(self):
        e = tokens(4, N, 5)
        plan = attnum.Plan.of("linformer", Q, K, V, e=e)
        gradients = plan.backward(V, Q, K, V, parameters=("e",))
        self.assertEqual(gradients["e"].shape, e.shape)
        attnum.check(op="linformer", q=Q, k=K, v=V, e=e, dout=V, dtype="f32", gradients=gradients).assert_ok()
        mine = {"e": np.empty_like(e), "q": np.empty_like(Q)}
        given = plan.backward(V, Q, K, V, parameters=("e",), out=mine)
        for name in mine:
            self.assertIs(given[name], mine[name])
            np.testing.assert_array_equal(mine[name], gradients[name])

    def test_parameters_are_read_at_every_call(self):
        gamma = np.ones((3, 1, 1), np.float32)
        plan = attnum.Plan.of("xnorm", Q, K, V, gamma=gamma)
        before = plan(Q, K, V)
        gamma *= 2
        np.testing.assert_array_equal(plan(Q, K, V), 4 * before)  # Y has gamma squared, and 4 is exact

    def test_masks(self):
        there = np.ones((2, N), bool)
        there[:, 20:] = False
        y = attnum.attention("softmax", Q, K, V, query_mask=there, key_mask=there)
        self.assertFalse(y[:, :, 20:].any())
        attnum.check(y, op="softmax", q=Q, k=K, v=V, query_mask=there, key_mask=there).assert_ok()


class Views(unittest.TestCase):
    def setUp(self):
        self.y = attnum.attention("softmax", Q, K, V)

    def same(self, y):
        np.testing.assert_array_equal(y, self.y)

    def test_layouts(self):
        q, k, v = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (Q, K, V))
        self.same(attnum.attention("softmax", q, k, v, layout="bnhd").swapaxes(1, 2))
        out = np.empty_like(v)
        plan = attnum.Plan.of("softmax", q, k, v, layout="bnhd")
        self.assertIs(plan(q, k, v, out=out), out)
        self.same(out.swapaxes(1, 2))
        packed = np.stack((q, k, v), 2)  # b x n x 3 x h x d, as one product gives them
        wide = np.full((*v.shape[:2], 2, *v.shape[2:]), 7, np.float32)
        plan(packed[:, :, 0], packed[:, :, 1], packed[:, :, 2], out=wide[:, :, 1])
        self.same(wide[:, :, 1].swapaxes(1, 2))
        self.assertTrue((wide[:, :, 0] == 7).all(), "something was written outside of the view")
        np.testing.assert_array_equal(plan.backward(v, q, k, v)["k"].swapaxes(1, 2),
                                      attnum.Plan.of("softmax", Q, K, V).backward(V, Q, K, V)["k"])
        mine = {"k": np.empty_like(k)}
        plan.backward(v, q, k, v, out=mine)
        np.testing.assert_array_equal(mine["k"], plan.backward(v, q, k, v)["k"])

    def test_dimensions(self):
        np.testing.assert_array_equal(attnum.attention("softmax", Q[0], K[0], V[0]), self.y[0])
        np.testing.assert_array_equal(attnum.attention("softmax", Q[0, 0], K[0, 0], V[0, 0]), self.y[0, 0])
        y = attnum.attention("softmax", Q[0].swapaxes(0, 1), K[0].swapaxes(0, 1), V[0].swapaxes(0, 1), layout="bnhd")
        np.testing.assert_array_equal(y.swapaxes(0, 1), self.y[0])

    def test_strides_without_copies(self):
        wide = np.full((2, 4, N + 3, D + 5), np.nan, np.float32)
        wide[:, :3, :N, :D] = Q
        out = np.full_like(wide, 7)
        plan = attnum.Plan.of("softmax", Q, K, V)
        plan(wide[:, :3, :N, :D], K, V, out=out[:, :3, :N, :D])
        self.same(out[:, :3, :N, :D])
        out[:, :3, :N, :D] = 7
        self.assertTrue((out == 7).all(), "something was written beside the view")

    def test_arrays_of_a_plan_may_change(self):
        wide = np.full((2, 3, N, D + 5), np.nan, np.float32)
        wide[..., :D] = Q
        plan = attnum.Plan.of("softmax", Q, K, V)
        for q in (Q, wide[..., :D], Q.copy(), exported(Q, "__array_interface__"), Q, wide[..., :D], Q):
            self.same(plan(q, K, V))
        one = attnum.Plan.of("softmax", Q[:1, :1], K[:1, :1], V[:1, :1])
        for q in (Q[:1, :1], Q[0, :1], Q[0, 0], Q[:1, :1]):
            np.testing.assert_array_equal(one(q, K[:1, :1], V[:1, :1]).reshape(N, D), self.y[0, 0])

    def test_protocols(self):
        for names in (("__dlpack__", "__dlpack_device__"), ("__array_interface__",)):
            q, k, v = (exported(x, *names) for x in (Q, K, V))
            with self.subTest(protocol=names[0]):
                self.same(attnum.attention("softmax", q, k, v))
                self.same(attnum.attention("softmax", *(exported(np.ascontiguousarray(x.swapaxes(1, 2)), *names)
                                                        for x in (Q, K, V)), layout="bnhd").swapaxes(1, 2))
        out = np.empty_like(V)
        attnum.attention("softmax", Q, K, V, out=exported(out, "__array_interface__"))
        self.same(out)

    def test_no_tokens(self):
        self.assertEqual(attnum.attention("softmax", Q[:, :, :0], K, V).shape, (2, 3, 0, D))
        self.assertEqual(attnum.attention("softmax", Q[:0], K[:0], V[:0]).shape, (0, 3, N, D))


class Outcomes(unittest.TestCase):
    def test_inverses(self):
        y, outcome = attnum.attention("soft", Q, v=V, sampling=POOL, outcome=True,
                                      inverse={"method": "nr-paper", "iterations": 3})
        self.assertEqual(outcome.status, attnum.Status.NOT_CONVERGED)
        self.assertEqual((outcome.landmarks, outcome.failures, len(outcome.inverses)), (9, 6, 6))
        self.assertTrue(all(one["iterations"] == 3 and one["stop"] == "iterations" and one["residual"] > 0
                            for one in outcome.inverses))
        self.assertTrue(np.isfinite(y).all())

    def test_nan(self):
        q = Q.copy()
        q[0, 1, 5, 2] = np.nan
        plan = attnum.Plan.of("softmax", q, K, V)
        y = plan(q, K, V)
        self.assertEqual(plan.status, attnum.Status.NONFINITE)
        self.assertEqual(plan.outcome().failures, 1)
        self.assertTrue(np.isnan(y[0, 1]).all() and np.isfinite(y[0, 0]).all() and np.isfinite(y[1]).all())


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


class BadInput(unittest.TestCase):
    """Each is an exception that names the argument, and leaves the output alone."""

    def refused(self, sentence, op="softmax", kind=attnum.ArgumentError, **given):
        arguments = {"q": Q, "k": None if op in ("soft", "lsh") else K, "v": V} | given
        with self.subTest(sentence=sentence), self.assertRaisesRegex(kind, sentence) as caught:
            attnum.attention(op, **arguments)
        self.assertNotIsInstance(caught.exception, AssertionError)

    def test_arrays(self):
        self.refused("^q: dtype int32", q=Q.astype("i4"))
        self.refused("^q: dtype float16: the cpu computes", q=Q.astype("f2"))
        self.refused("^v is f64, expected f32", v=V.astype("f8"))
        self.refused("^q: list", q=Q.tolist())
        self.refused("^q: 1 dim", q=Q[0, 0, 0])
        self.refused("^q: 5 dim", q=Q[None])
        self.refused("^v: none", v=None)
        self.refused("^v: rows is 36, expected 35", k=K[:, :, :-1])
        self.refused("^k: heads is 2, expected 3", k=K[:, :2])
        self.refused("^q: strides", q=Q[..., ::2])
        self.refused("^q: strides", q=Q.swapaxes(2, 3))
        self.refused("^q: a stride does not fit", q=Q[:, :, ::-1])
        self.refused("^k: a stride does not fit", k=np.broadcast_to(K[:, :, :1], K.shape))
        self.refused("^q: Device in memory of cuda, expected an array in memory of cpu", device="cpu",
                     q=type("Device", (), {"__cuda_array_interface__": {}})())

    def test_outputs(self):
        self.refused("^out: read-only", out=read_only(V))
        self.refused("^out: .*read-only", out=read_only(V), layout="bnhd", q=Q, k=K)
        self.refused("^out overlaps q", out=Q)
        self.refused("^out is f64, expected f32", out=V.astype("f8"))
        self.refused("^out: rows is 35, expected 36", out=V[:, :, :-1].copy())
        self.refused("^out: .*expected", out=V[:, :, :-1].copy(), layout="bnhd")
        out = np.full_like(V, 7)
        self.refused("^v is f64", v=V.astype("f8"), out=out)
        self.assertTrue((out == 7).all())
        plan = attnum.Plan.of("softmax", Q, K, V)
        for sentence, gradients in (("out.*x", {"x": V}), (r"out\['q'\]: read-only", {"q": read_only(Q)}),
                                    ("gradient of v overlaps", {"v": V})):
            with self.assertRaisesRegex(attnum.ArgumentError, sentence):
                plan.backward(V, Q, K, V, out=gradients)
        with self.assertRaisesRegex(attnum.UnsupportedError, "no parameter e"):
            plan.backward(V, Q, K, V, parameters=("e",))

    def test_choices(self):
        self.refused("^op: 'sofmax', expected one of soft, ", op="sofmax")
        self.refused("^variant: 'x', expected one of attention, causal", variant="x")
        self.refused("^layout: 'nbhd'", layout="nbhd")
        self.refused("^inverse.method: 'nr-papr', expected one of nr, ", op="soft", sampling=POOL, inverse="nr-papr")
        self.refused("^sampling.radius: no such option", op="soft", sampling=POOL | {"radius": 2})
        self.refused("^sampling: softmax has no such option", sampling=POOL)
        self.refused("^isa: 'neon'", isa="neon")
        self.refused("^dtype: 'f7'", dtype="f7")
        self.refused("threads=-1", threads=-1)

    def test_numbers(self):
        self.refused("^scale is nan, expected positive and finite", op="gaussian", scale=float("nan"))
        self.refused("^scale is -1", op="gaussian", scale=-1)
        self.refused("epsilon is nan", op="sima", epsilon=float("nan"))
        self.refused("^epsilon: 'small', expected double", op="sima", epsilon="small")
        self.refused("grid 0x0", op="soft", sampling="pool")
        self.refused("^sampling.stride: 1.5, expected int64_t", op="soft", sampling=POOL | {"stride": 1.5})
        self.refused("stride", op="soft", sampling=POOL | {"stride": 7})
        self.refused("index 1 is 36", op="soft", sampling={"kind": "indices", "indices": [0, N]})
        self.refused("^sampling.count: 3, but sampling.indices has 2", op="soft",
                     sampling={"kind": "indices", "indices": [0, 1], "count": 3})
        self.refused("^sampling.indices: dtype float64", op="soft", sampling={"kind": "indices", "indices": [0.5]})
        self.refused(r"^buckets: shape \(2, 3, 1, 35\), expected \(2, 3, 1, 36\)", op="lsh", chunk=6,
                     buckets=np.zeros((2, 3, 1, N - 1), int))

    def test_parameters_and_masks(self):
        self.refused("^e: 1 dim", op="linformer", e=np.ones(4))
        self.refused("linformer.e has 3 rows", op="linformer", e=np.ones((3, 4)))
        self.refused("^linformer.e: the description gives none", op="linformer")
        self.refused(r"^key_mask: shape \(1, 36\), expected \(2, 36\)", key_mask=np.ones((1, N), bool))
        self.refused("^key_mask: dtype float64", key_mask=np.ones((2, N)))
        self.refused("^key_mask: .*contiguous", key_mask=np.ones((2, 2 * N), bool)[:, ::2])

    def test_unsupported(self):
        self.refused("soft has no causal form: SOFT has Q = K", op="soft", causal=True, kind=attnum.UnsupportedError,
                     **SOFT)
        self.refused("soft has no K different from Q", op="soft", k=K, kind=NotImplementedError, **SOFT)
        self.assertTrue(issubclass(attnum.UnsupportedError, ValueError) and issubclass(attnum.Error, RuntimeError))

    def test_device(self):
        # a build without CUDA, or a machine without a device
        with self.assertRaisesRegex(attnum.Error, "device='cuda': .*(CUDA|no device)"):
            attnum.Plan("softmax", N, D, device="cuda", threads=10**6)
            self.skipTest("there is a device")


class Lifetimes(unittest.TestCase):
    def test_threads(self):
        for threads in (1, 3):
            context = Context(threads)
            self.assertEqual(lib.atn_context_threads(context._context), threads)

    def test_threads_share_a_plan(self):
        plan = attnum.Plan.of("soft", Q, v=V, **SOFT)
        wanted, got = plan(Q, v=V), []
        several = [threading.Thread(target=lambda: got.extend(plan(Q, v=V) for _ in range(20))) for _ in range(4)]
        for one in several:
            one.start()
        for one in several:
            one.join()
        self.assertEqual(len(got), 80)
        self.assertTrue(all(np.array_equal(y, wanted) for y in got))

    def test_forks(self):
        """OpenMP's threads stay with the parent: a child that waited for them would be ended by its alarm."""
        code = ("import attnum, numpy, os, signal\n"
                "x = numpy.ones((4, 64, 8), 'f4')\n"
                "plan = attnum.Plan.of('softmax', x, x, x, threads=2); y = plan(x, x, x); attnum.kernel(x)\n"
                "if os.fork() == 0:\n"
                "    signal.alarm(20)\n"
                "    same = numpy.array_equal(attnum.attention('softmax', x, x, x), y); attnum.kernel(x)\n"
                "    try: plan(x, x, x)\n"
                "    except attnum.Error as error: os._exit(3 if same and 'fork' in str(error) else 1)\n"
                "    os._exit(2)\n"
                "raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_interpreters_end(self):
        """Plans, failed ones too, in cycles of garbage and alive at the end."""
        code = ("import attnum, numpy, gc\n"
                "x = numpy.ones((36, 8), 'f4')\n"
                "class Ring: pass\n"
                "for i in range(50):\n"
                "    ring = Ring(); ring.self = ring; ring.plan = attnum.Plan.of('sima', x, None, x)\n"
                "    try: attnum.Plan('linformer', 36, 8)\n"
                "    except attnum.Error as error: ring.error = error; kept = error\n"
                "gc.collect()\n"
                "last = attnum.Plan.of('sima', x, None, x); last(x, v=x)\n"
                "raise SystemExit(7)\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 7, done.stderr)


if __name__ == "__main__":
    unittest.main()
