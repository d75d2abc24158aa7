# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that do not fit, for every argument of every function that takes arrays: an ArgumentError whose sentence
begins with one of the call's arguments (of two that do not fit together either may be the one)."""
import re
import unittest

import attnum
import numpy as np

N, D = 36, 8
GRID = {"height": 6, "width": 6, "stride": 2}
Q, K, V = (np.random.default_rng(i).standard_normal((2, 3, N, D), np.float32) for i in range(3))
A = attnum.kernel(attnum.sample(Q, "pool", **GRID))
W = A[..., :4].copy()
E = np.ones((N, 5), np.float32)
MASK = np.ones((2, N), bool)


class Device:
    __cuda_array_interface__ = {"shape": Q.shape, "typestr": "<f4", "data": (4096, False), "version": 3}


def misaligned(x):
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)


# What no array may be, and what none may be that is read or written as it lies in memory.
NEVER = {"text": lambda x: "abc", "object": lambda x: x.astype(object), "complex": lambda x: x.astype("c8"),
         "CUDA": lambda x: Device(), "structure": lambda x: np.zeros(x.shape, [("a", "f4")]),
         "number": lambda x: 3, "0 dimensions": lambda x: np.array(x.flat[0]),
         "wrong rows": lambda x: np.ascontiguousarray(x[..., :-3, :]), "no rows": lambda x: x[..., :0, :]}
IN_PLACE = {"list": lambda x: x.tolist(), "int32": lambda x: x.astype("i4"), "float16": lambda x: x.astype("f2"),
            "float64": lambda x: x.astype("f8"), "big-endian": lambda x: x.astype(">f4"),
            "1 dimension": lambda x: x.reshape(-1), "5 dimensions": lambda x: x[(None,) * (5 - x.ndim)],
            "strided": lambda x: np.repeat(x, 2, -1)[..., ::2], "reversed": lambda x: x[..., ::-1],
            "rows reversed": lambda x: x[..., ::-1, :], "repeated": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
            "misaligned": misaligned, "no columns": lambda x: x[..., :0]}
# What the first array alone decides: sizes, type and device.
FREE = {"wrong rows", "no rows", "float64", "CUDA"}


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


class Arrays(unittest.TestCase):
    def setUp(self):
        self.plan = attnum.Plan.of("softmax", Q, K, V)
        self.linformer = attnum.Plan.of("linformer", Q, K, V, e=E)
        self.masked = attnum.Plan.of("softmax", Q, K, V, padding=True)

    def refused(self, call, given, argument, what, x):
        with self.subTest(argument=argument, what=what):
            with self.assertRaises(attnum.ArgumentError) as caught:
                call(**given | {argument: x})
            said = str(caught.exception)
            first = re.match(r"(?:out\['|gradient of |sampling[. ]|linformer\.)?(\w+)", said)
            self.assertTrue(first and first[1] in given, said)

    def judge(self, call, given, in_place=True, outputs=(), free=()):
        call(**given)
        for argument, x in given.items():
            for what, make in (NEVER | IN_PLACE if in_place else NEVER).items():
                if not (argument in free and what in FREE):
                    self.refused(call, given, argument, what, make(x))
        for argument in outputs:
            self.refused(call, given, argument, "read-only", read_only(given[argument]))
            for other, x in given.items():
                if other != argument:
                    self.refused(call, given, argument, f"overlaps {other}", x)

    def test_attention(self):
        self.judge(lambda **a: attnum.attention("softmax", **a), {"q": Q, "k": K, "v": V, "out": V.copy()},
                   outputs=["out"])

    def test_plan(self):
        self.judge(lambda **a: self.plan(**a), {"q": Q, "k": K, "v": V, "out": V.copy()}, outputs=["out"])

    def test_backward(self):
        self.judge(lambda **a: self.plan.backward(**a), {"dout": V, "q": Q, "k": K, "v": V})
        self.judge(lambda **a: self.plan.backward(V, Q, K, V, out=a), {"q": Q.copy(), "k": K.copy(), "v": V.copy()},
                   outputs=["q", "k", "v"])

    def test_parameters(self):
        self.judge(lambda **a: attnum.attention("linformer", Q, K, V, **a), {"e": E}, in_place=False)
        for what in ("list", "float16", "float64", "strided", "misaligned"):
            x = IN_PLACE[what](E)
            self.refused(lambda **a: self.linformer.backward(V, Q, K, V, out=a, parameters=("e",)), {"e": E}, "e", what,
                         x)
        self.judge(lambda **a: attnum.attention("soft", Q, v=V, inverse="cholesky",
                                                sampling={"kind": "conv", **GRID, **a}),
                   {"weights": np.ones((D, D, 2, 2), np.float32)}, in_place=False)

    def test_masks(self):
        given = {"query_mask": MASK, "key_mask": MASK}
        for argument in given:
            for what, x in (("dtype", MASK.astype("f4")), ("shape", MASK[:1]),
                            ("strided", np.repeat(MASK, 2, 1)[:, ::2]), ("list", MASK.tolist()), ("CUDA", Device()), ("1 dimension", MASK[0])):
                self.refused(lambda **a: self.masked(Q, K, V, **a), given, argument, what, x)

    def test_kernel(self):
        self.judge(attnum.kernel, {"x": Q, "y": K, "out": np.empty((2, 3, N, N), np.float32)}, outputs=["out"],
                   free=["x"])

    def test_numbers_that_would_be_cut_off(self):
        for sentence, call in (
                ("^(sampling.)?stride", lambda: attnum.sample(Q, "pool", **GRID | {"stride": np.float32(2.9)})),
                ("^tokens", lambda: attnum.Plan("softmax", np.float32(10.7), 4)),
                ("^sampling.height", lambda: attnum.attention(
                    "soft", Q, v=Q, sampling={"kind": "pool", **GRID, "height": np.array(6.5)})),
                ("^(sampling.)?indices: dtype bool", lambda: attnum.sample(Q, "indices", indices=np.arange(N) < 3))):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(attnum.ArgumentError, sentence):
                call()
        wanted = attnum.sample(Q, "pool", **GRID)
        np.testing.assert_array_equal(attnum.sample(Q, "pool", height=np.int32(6), width=6, stride=np.uint8(2)), wanted)

    def test_sample(self):
        def sample(**given):
            return attnum.sample(kind="pool", **GRID, **given)
        with self.assertRaisesRegex(attnum.ArgumentError, "grid 6x6 does not hold 33 tokens"):
            sample(tokens=Q[..., :33, :])
        self.judge(sample, {"tokens": Q, "out": np.empty((2, 3, 9, D), np.float32)}, outputs=["out"], free=["tokens"])

    def test_inverses(self):
        self.judge(attnum.inverse, {"a": A, "out": A.copy()}, outputs=["out"], free=["a"])
        self.judge(attnum.inverse_apply, {"a": A, "w": W, "out": W.copy()}, outputs=["out"], free=["a"])
        self.judge(attnum.inverse_backward, {"a": A, "dx": A.copy(), "out": A.copy()}, outputs=["out"], free=["a"])
        for what in ("wrong rows", "no rows"):
            self.refused(attnum.inverse, {"a": A}, "a", what, NEVER[what](A))
        self.judge(lambda **a: attnum.inverse(A, trace=("inverse_error", "range_residual"), **a),
                   {"pinv": A.astype("f8"), "projector": A.astype("f8")}, in_place=False)

    def test_check(self):
        given = {"output": V, "q": Q, "k": K, "v": V}
        for argument in given:
            for what in ("text", "CUDA", "number", "0 dimensions", "wrong rows"):
                if (argument, what) != ("q", "wrong rows"):
                    self.refused(lambda **a: attnum.check(op="softmax", **a), given, argument, what, NEVER[what](Q))


if __name__ == "__main__":
    unittest.main()
