# SPDX-License-Identifier: BSD-3-Clause
"""check, cases, the pytest plugin and read: what the program says arrives."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import attnum
import numpy as np
from attnum import _program

Q, K, V = (np.random.default_rng(seed).standard_normal((1, 2, 64, 16)).astype(np.float32) for seed in (1, 2, 3))


class Check(unittest.TestCase):
    def test_right(self):
        result = attnum.check(attnum.attention("sima", Q, K, V), op="sima", q=Q, k=K, v=V)
        self.assertTrue(result and result.verdict == "pass" and result.ratio <= 1 and not result.where)
        self.assertEqual((len(result.heads), result.summary["dtype"], result.diagnosis), (2, "f32", []))
        self.assertEqual(result.reachable, max(head["reachable"] for head in result.heads))
        self.assertIs(result.assert_ok(), result)

    def test_place(self):
        y = attnum.attention("sima", Q, K, V)
        y[0, 1, 50:, 8:] = 0
        result = attnum.check(y, op="sima", q=Q, k=K, v=V)
        self.assertFalse(result)
        self.assertEqual([(head["batch"], head["head"], head["yours"]) for head in result.where], [(0, 1, 0)])
        self.assertGreater(result.ratio, 1.5)
        with self.assertRaises(AssertionError) as caught:
            result.assert_ok()
        self.assertIn("rows 52 to 55  ........00000000", str(caught.exception))
        self.assertIn("rows 50 to 63", str(caught.exception))
        self.assertIn("FAIL", repr(result))
        self.assertIn("srcdoc=", result._repr_html_())

    def test_diagnosis(self):
        result = attnum.check(attnum.attention("sima", Q, K, V, norm="l2"), op="sima", q=Q, k=K, v=V)
        self.assertIn("norm=l2", result.diagnosis)
        self.assertIn(result.diagnosis[0], repr(result))
        self.assertLess(len(result.diagnosis), len(result.mistakes), "some explain nothing")

    def test_masks(self):
        keys, queries = np.arange(64)[None] < 50, np.arange(64)[None] % 3 != 0
        y = attnum.attention("softmax", Q, K, V, key_mask=keys, query_mask=queries)
        attnum.check(y, op="softmax", q=Q, k=K, v=V, key_mask=keys, query_mask=queries).assert_ok()
        for wrong in ({"key_mask": keys}, {"query_mask": queries}, {"key_mask": queries, "query_mask": keys}):
            self.assertFalse(attnum.check(y, op="softmax", q=Q, k=K, v=V, **wrong), wrong.keys())

    def test_scale_and_distance(self):
        given = {"sampling": {"kind": "first", "count": 9}, "inverse": "nr-soft"}
        y = attnum.attention("soft", Q, v=V, scale=0.02, **given)
        attnum.check(y, op="soft", q=Q, v=V, scale=0.02, distance="direct", **given).assert_ok()
        self.assertFalse(attnum.check(y, op="soft", q=Q, v=V, **given))
        with self.assertRaisesRegex(attnum.ArgumentError, "^distance 'far'"):
            attnum.check(y, op="soft", q=Q, v=V, distance="far", **given)

    def test_options_and_gradients(self):
        options = {"sampling": {"kind": "pool", "height": 8, "width": 8, "stride": 2}, "inverse": {"method": "nr-soft",
                                                                                                  "ridge": 0.5}}
        plan = attnum.Plan.of("soft", Q, v=V, **options)
        y, gradients = plan(Q, v=V), plan.backward(V, Q, v=V)
        result = attnum.check(y, op="soft", q=Q, v=V, dout=V, gradients=gradients, dtype="f32", **options).assert_ok()
        self.assertEqual([row["result"] for row in result.results], ["output", "grad-tokens", "grad-values"])
        self.assertFalse(attnum.check(2 * y, op="soft", q=Q, v=V, **options))
        self.assertFalse(attnum.check(y, op="soft", q=Q, v=V, **options | {"inverse": "nr-soft"}))
        self.assertFalse(attnum.check(op="soft", q=Q, v=V, dout=V, gradients={"v": 2 * gradients["v"]}, **options))

    def test_layouts_and_types(self):
        y = attnum.attention("softmax", Q, K, V)
        turned = {name: x.swapaxes(1, 2) for name, x in (("q", Q), ("k", K), ("v", V))}
        self.assertTrue(attnum.check(y.swapaxes(1, 2), op="softmax", layout="bnhd", **turned))
        self.assertEqual(attnum.check(y.astype("f2"), op="softmax", q=Q, k=K, v=V).summary["dtype"], "f16")
        self.assertFalse(attnum.check(y.astype("f2").astype("f4"), op="softmax", q=Q, k=K, v=V))
        result = attnum.check(np.full_like(y, np.nan), op="softmax", q=Q, k=K, v=V)
        self.assertEqual((result.verdict, type(result.heads[0]["error"]), result.ratio), ("FAIL", float, np.inf))
        y[0, 0, 3, 1] = np.nan
        self.assertEqual(attnum.check(y, op="softmax", q=Q, k=K, v=V).ratio, np.inf)

    def test_numbers_are_not_rounded(self):
        q, k, v = (x.astype("f8") / 3 for x in (Q, K, V))
        y = attnum.attention("softmax", q, k, v)
        for kind in (">f8", "g"):
            result = attnum.check(y.astype(kind), op="softmax", q=q.astype(kind), k=k.astype(kind), v=v.astype(kind))
            self.assertEqual((result.verdict, result.summary["dtype"]), ("pass", "f64"))
        large = np.arange(V.size).reshape(V.shape) + 2**26  # f32 does not hold them
        attnum.check(attnum.attention("softmax", q, k, large.astype("f8")), op="softmax", q=q, k=k, v=large).assert_ok()

    def test_bad_input(self):
        y = V
        for sentence, given in (("^op 'soma'", {"op": "soma"}), ("^norm=l7", {"norm": "l7"}),
                                ("^dtype 'f8'", {"dtype": "f8"}), ("^layout 'hb'", {"layout": "hb"}), ("^v: shape", {"k": K[:, :, :5]}),
                                ("^v: list", {"v": [1]}), ("^output: missing", {"output": None}),
                                ("^output: dtype complex", {"output": y + 1j})):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(attnum.ArgumentError, sentence):
                attnum.check(**{"output": y, "op": "sima", "q": Q, "k": K, "v": V} | given)

    def test_cases(self):
        cases = attnum.cases("sima/code", n=[20, 33], d=8, heads=4, kv_heads=2, layout="bnhd", seed=5)
        self.assertEqual([case.q.shape for case in cases], [(1, 20, 4, 8), (1, 33, 4, 8)])
        for case in cases:
            self.assertEqual((case.k.shape[2], case.seed), (2, 5))
            case.check(case.output).assert_ok()
            self.assertFalse(case.check(1.1 * case.output, dtype="bf16"))
            self.assertIsNone(case.array("gamma"))
        rounded = ((case.output.astype("f4").view("u4") + 0x8000) & 0xffff0000).view("f4")  # to bf16, nearly to nearest
        for dtype, right in (("bf16", True), (None, False)):
            result = case.check(rounded, dtype=dtype)
            self.assertEqual((result.summary["dtype"], bool(result)), (dtype or "f32", right))
        case, = attnum.cases("softmax/attention", n=20)
        gradients = {"q": case.array("grad_tokens"), "v": case.array("grad_values")}
        case.check(case.output, gradients=gradients).assert_ok()
        self.assertFalse(case.check(gradients=gradients | {"q": -gradients["q"]}))
        with self.assertRaisesRegex(attnum.ArgumentError, "soma"):
            attnum.cases("soma")

    def test_program_is_missing(self):
        with unittest.mock.patch.dict(os.environ, ATTNUM_PROGRAM="/nowhere/attnum"):
            with self.assertRaisesRegex(attnum.Error, "the program attnum: .*nowhere"):
                attnum.cases("sima")

    def test_program_is_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "attnum")
            program.write_text("#!/bin/sh\nkill -9 $$\n")
            program.chmod(0o755)
            with unittest.mock.patch.dict(os.environ, ATTNUM_PROGRAM=str(program)):
                for call in (lambda: attnum.cases("sima"), lambda: attnum.check(V, op="sima", q=Q, k=K, v=V)):
                    with self.assertRaisesRegex(attnum.Error, "ended by signal 9"):
                        call()

    def test_library_of_the_program_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "attnum")
            program.write_text("#!/bin/sh\necho 'attnum: error while loading shared libraries: libgsl.so.27: cannot "
                               "open shared object file: No such file or directory' >&2\nexit 127\n")
            program.chmod(0o755)
            with unittest.mock.patch.dict(os.environ, ATTNUM_PROGRAM=str(program)):
                with self.assertRaisesRegex(attnum.Error, "libgsl.so.27, .* apt install libgsl27$"):
                    attnum.cases("sima")


TESTS = """
import attnum, pytest

@pytest.mark.attnum("sima/code", n=[20, 33], d=8)
def test_right(attnum_case):
    c = attnum_case
    attnum_case.check(attnum.attention("sima", c.q, c.k, c.v, variant="code"), dtype="f32").assert_ok()

@pytest.mark.attnum("sima/code", n=20, d=8)
def test_wrong(attnum_case):
    c = attnum_case
    attnum_case.check(attnum.attention("sima", c.q, c.k, c.v, variant="l2"), dtype="f32").assert_ok()
"""


@unittest.skipUnless(importlib.util.find_spec("pytest"), "pytest is not installed")
class Plugin(unittest.TestCase):
    def run_pytest(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "test_kernel.py").write_text(TESTS)
            plugin = [] if "attnum" in _entry_points() else ["-p", "attnum._pytest"]
            done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin, "-v",
                                   "--junitxml=j.xml", *options], cwd=folder, capture_output=True, text=True)
            junit = pathlib.Path(folder, "j.xml")
            return done.stdout + done.stderr, junit.read_text() if junit.exists() else ""

    def test_cases_and_failures(self):
        out, junit = self.run_pytest()
        self.assertIn("1 failed, 2 passed", out)
        self.assertIn("test_right[sima-code-n33-seed1] PASSED", out)
        self.assertIn("variant sima/l2", out)
        self.assertIn("output, against the exact answer", out)
        self.assertIn('name="attnum_verdict" value="FAIL"', junit)
        self.assertIn('name="attnum_diagnosis"', junit)

    def test_options(self):
        out, _ = self.run_pytest("--attnum-seed", "7,8", "-k", "right")
        self.assertIn("4 passed", out)
        self.assertIn("seed8", out)
        out, _ = self.run_pytest("--attnum-dtype", "f9")
        self.assertIn("test_kernel.py::test_right: mark attnum: dtype 'f9'", out)
        self.assertNotIn("Traceback", out)


def _entry_points():
    from importlib.metadata import entry_points
    return entry_points(group="pytest11").names


class Read(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        done = _program.run(["run", "convergence/initialisation", "--quick", "--out", "."], cwd=cls.folder.name)
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.path = f"{cls.folder.name}/convergence/initialisation.csv"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_types_and_metadata(self):
        table = attnum.read(self.path)
        lines = pathlib.Path(self.path).read_text().splitlines()
        self.assertEqual(list(table), lines[0].split(","))
        self.assertTrue(all(len(column) == len(lines) - 1 for column in table.values()))
        self.assertEqual(table["m"].dtype, np.int64)
        self.assertEqual(table["alpha"].dtype, np.float64)
        self.assertEqual(table["matrix"][0], "identity")
        self.assertEqual(set(table["search_found"]) - {False}, {None, True})
        self.assertTrue(np.isnan(table["search_n"][list(table["search_found"]).index(None)]))
        columns = {column["name"]: column for column in table.metadata["tableSchema"]["columns"]}
        self.assertIn("the start X_0", columns["alpha"]["dc:description"])

    def test_frames(self):
        table = attnum.read(self.path)
        for name in ("pandas", "polars"):
            with self.subTest(name=name):
                if not importlib.util.find_spec(name):
                    self.skipTest(f"{name} is not installed")
                frame = attnum.read(self.path, frame=name)
                self.assertEqual((list(frame.columns), len(frame)), (list(table), len(table["m"])))
                np.testing.assert_array_equal(frame["alpha"].to_numpy(), table["alpha"])
                self.assertEqual(list(frame["matrix"]), list(table["matrix"]))
                self.assertEqual(name != "pandas" or "tableSchema" in frame.attrs["metadata"], True)
        with self.assertRaisesRegex(attnum.ArgumentError, "^frame: 'arrow', expected pandas or polars"):
            attnum.read(self.path, frame="arrow")

    def test_bad_files(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(shutil.copy(self.path, folder + "/a.csv"))
            with self.assertRaisesRegex(attnum.ArgumentError, "a.csv-metadata.json"):
                attnum.read(copy)
            shutil.copy(self.path + "-metadata.json", folder + "/a.csv-metadata.json")
            self.assertEqual(len(attnum.read(copy)["m"]), len(attnum.read(self.path)["m"]))
            copy.write_text(copy.read_text().replace("matrix,", "matrices,", 1))
            with self.assertRaisesRegex(attnum.ArgumentError, "columns of its metadata"):
                attnum.read(copy)
            copy.write_bytes(b"\x93NUMPY\x01\x00")
            with self.assertRaisesRegex(attnum.ArgumentError, "a.csv is no CSV file"):
                attnum.read(copy)
        with self.assertRaises(FileNotFoundError):
            attnum.read("nowhere.csv")


if __name__ == "__main__":
    unittest.main()
