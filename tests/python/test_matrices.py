# SPDX-License-Identifier: BSD-3-Clause
"""Kernel matrices, landmarks and inverses by themselves."""
import unittest

import attnum
import numpy as np

X = np.random.default_rng(1).standard_normal((2, 3, 36, 8))
Y = np.random.default_rng(2).standard_normal((2, 3, 20, 8))
U = 2.0 ** -53


class Matrices(unittest.TestCase):
    def test_kernel(self):
        for y in (None, Y):
            other = X if y is None else y
            squares = ((X[..., :, None, :] - other[..., None, :, :]) ** 2).sum(-1)
            for scale in (None, 0.3):
                s = 0.5 / np.sqrt(8) if scale is None else scale
                want, got = np.exp(-s * squares), attnum.kernel(X, y, scale=scale)
                # the header's bound, and as much again for NumPy's own
                self.assertTrue((abs(got - want) <= 2 * ((8 + 4) * s * squares + 3) * U * want).all())
        got = attnum.kernel(X[0])
        self.assertEqual(got.shape, (3, 36, 36))
        np.testing.assert_array_equal(got, got.swapaxes(1, 2))
        # far from 0, |x|^2 + |y|^2 - 2 x.y loses half of the digits
        far = X[0, 0] + 1e4
        for y in (None, far[:9]):
            direct, expanded = (attnum.kernel(far, y, distance=distance) for distance in ("direct", "expanded"))
            np.testing.assert_array_equal(direct, attnum.kernel(far, y))
            self.assertTrue(1e-12 < abs(expanded - direct).max() < 1e-4)
        with self.assertRaisesRegex(attnum.ArgumentError, "^scale is nan"):
            attnum.kernel(X, scale=float("nan"))
        with self.assertRaisesRegex(attnum.ArgumentError, "^distance: 'far'"):
            attnum.kernel(X, distance="far")

    def test_dlpack(self):
        class Exported:
            def __init__(self, array):
                self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__
        x = X[0, 0, :9]
        a = attnum.kernel(Exported(x))
        np.testing.assert_array_equal(a, attnum.kernel(x))
        np.testing.assert_array_equal(attnum.sample(Exported(x), "first", count=2), x[:2])
        found = attnum.inverse(Exported(a), "cholesky", trace=("inverse_error",), pinv=np.linalg.inv(a))
        np.testing.assert_array_equal(found.x, attnum.inverse(a, "cholesky").x)

    def test_samplings(self):
        want = X.reshape(2, 3, 3, 2, 3, 2, 8).mean((3, 5)).reshape(2, 3, 9, 8)
        got = attnum.sample(X, "pool", height=6, width=6, stride=2)
        self.assertTrue((abs(got - want) <= 8 * U * 4).all())
        np.testing.assert_array_equal(attnum.sample(X, "indices", indices=[3, 1, 35]), X[:, :, [3, 1, 35]])
        drawn = attnum.sample(X[0, 0], "rpcholesky", count=5, uniforms=np.random.default_rng(3).random(5))
        self.assertTrue((drawn[:, None] == X[0, 0]).all(-1).any(1).all(), "landmarks are tokens")
        with self.assertRaisesRegex(attnum.ArgumentError, "uniforms"):
            attnum.sample(X, "rpcholesky", count=5)

    def test_readme(self):
        """alpha = 2/|A|_1^2 meets A = I (statement S11)."""
        x, status, (info,), _ = attnum.inverse(np.eye(2), "nr-paper")
        self.assertIs(status, attnum.Status.NOT_CONVERGED)
        self.assertFalse(x.any())
        self.assertEqual((info["alpha"], info["iterations"], info["status"]), (2, 20, attnum.Status.NOT_CONVERGED))

    def test_constants_are_the_methods(self):
        a = attnum.kernel(X[0, 0])
        norm = abs(a).sum(0).max()
        for method, numerator in (("nr-paper", 2), ("nr-soft", 1.8), ("nystromformer", 1)):
            info = attnum.inverse(a, method).infos[0]
            self.assertLessEqual(abs(info["alpha"] * norm ** 2 / numerator - 1), 100 * U, method)
        self.assertEqual(attnum.inverse(a, "nr", alpha=0.25, iterations=3).infos[0]["alpha"], 0.25)

    def test_traces(self):
        a = attnum.kernel(attnum.sample(X, "pool", height=6, width=6, stride=2))
        pinv = np.linalg.inv(a)
        result = attnum.inverse(a, "nr-paper", iterations=12, trace=("residual", "inverse_error"), iterates=True,
                                pinv=pinv)
        self.assertEqual(len(result.traces), 6)
        for i, trace in enumerate(result.traces):
            b, h = divmod(i, 3)
            np.testing.assert_array_equal(trace["iterates"][-1], result.x[b, h])
            self.assertEqual(len(trace["residual"]), 13)
            for k in (0, 12):
                xk, m = trace["iterates"][k], a[b, h]
                residual = np.linalg.norm(m @ xk @ m - m, 2) / np.linalg.norm(m, 2)
                error = np.linalg.norm(xk - pinv[b, h], 2) / np.linalg.norm(pinv[b, h], 2)
                self.assertLessEqual(abs(trace["residual"][k] - residual), 1000 * U)  # of numbers of order 1
                self.assertLessEqual(abs(trace["inverse_error"][k] - error), 1000 * U * np.linalg.cond(m))
        pair = np.stack([np.full((2, 2), np.nan), np.eye(2)])
        lengths = [len(trace["residual"]) for trace in attnum.inverse(pair, iterations=3, trace=("residual",)).traces]
        self.assertEqual(lengths, [0, 4])
        with self.assertRaisesRegex(attnum.ArgumentError, "^pinv: none, but inverse_error needs it"):
            attnum.inverse(a, trace=("inverse_error",))
        with self.assertRaisesRegex(attnum.ArgumentError, "^trace: 'error'"):
            attnum.inverse(a, trace=("error",))
        with self.assertRaisesRegex(attnum.ArgumentError, "iterations is -5, expected 0"):
            attnum.inverse(a, trace=("residual",), iterations=-5)
        with self.assertRaisesRegex(attnum.ArgumentError, "^pinv: shape"):
            attnum.inverse(a, trace=("inverse_error",), pinv=pinv[0])

    def test_apply_and_backward(self):
        a = attnum.kernel(attnum.sample(X, "pool", height=6, width=6, stride=2))
        x, status, _, _ = attnum.inverse(a, "cholesky", jitter=0)
        self.assertIs(status, attnum.Status.OK)
        w = Y[:, :, :9]
        y = attnum.inverse_apply(a, w, "cholesky", jitter=0)
        scale = np.abs(x) @ np.abs(w)
        self.assertTrue((abs(y - x @ w) <= 100 * U * scale).all())
        da = attnum.inverse_backward(a, x, "cholesky", jitter=0)
        want = -x @ x @ x  # Eq. 12 with dX = X, which is symmetric
        self.assertTrue((abs(da - want) <= 100 * U * np.abs(x) @ np.abs(x) @ np.abs(x)).all())

    def test_outcomes_of_calls(self):
        """A singular matrix is no error of the caller's."""
        singular = np.ones((3, 3))
        for call in (attnum.inverse_apply, attnum.inverse_backward):
            for a, want in ((singular, attnum.Status.SINGULAR), (singular + np.eye(3), attnum.Status.OK)):
                result, status = call(a, np.eye(3), "cholesky", jitter=0, outcome=True)
                self.assertEqual((result.shape, status), ((3, 3), want), call.__name__)

    def test_constants_and_gradients_of_calls(self):
        """One step of Newton-Raphson: X_1 = 2 alpha A - alpha^2 A^3."""
        a, w, alpha = attnum.kernel(X[0, 0, :9]), Y[0, 0, :9], 0.01
        constants = {"alpha": alpha, "iterations": 1}
        np.testing.assert_allclose(attnum.inverse_apply(a, w, "nr", **constants),
                                   (2 * alpha * a - alpha ** 2 * a @ a @ a) @ w, rtol=1e-12, atol=1e-14)
        dx = a[::-1, ::-1].copy()
        want = 2 * alpha * dx - alpha ** 2 * (dx @ a @ a + a @ dx @ a + a @ a @ dx)
        np.testing.assert_allclose(attnum.inverse_backward(a, dx, "nr", gradient="steps", **constants), want, rtol=1e-12,
                                   atol=1e-14)

    def test_bad_matrices(self):
        for sentence, a in (("^a", X), ("symmetric", np.triu(np.ones((3, 3)))),
                            ("^a: dtype int64", np.eye(2, dtype=int)),
                            ("^a: rows must lie side by side", np.eye(4)[:2, :2])):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(attnum.ArgumentError, sentence):
                attnum.inverse(a)
        with self.assertRaisesRegex(attnum.ArgumentError, "^out: read-only"):
            out = np.eye(2)
            out.flags.writeable = False
            attnum.inverse(np.eye(2), out=out)
        with self.assertRaisesRegex(attnum.ArgumentError, "^out overlaps a"):
            a = np.eye(2)
            attnum.inverse(a, out=a)


if __name__ == "__main__":
    unittest.main()
