# SPDX-License-Identifier: BSD-3-Clause
"""CUDA's memory, on the emulator of its runtime: the package with a module that is linked to the emulated library, in
a process of its own (`test_cuda.py`, started by the test below)."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import attnum
import numpy as np


class DeviceArray:
    """An array in the device's memory, as CuPy and PyTorch show theirs."""

    def __init__(self, context, array):
        from attnum._library import ffi, lib, must
        memory = ffi.new("void **")
        must(lib.atn_allocate(context._context, array.nbytes, memory), context._context)
        self.shape, self.dtype, self.context, self.memory = array.shape, array.dtype, context, memory[0]
        array = np.ascontiguousarray(array)
        must(lib.atn_upload(context._context, self.memory, ffi.from_buffer(array), array.nbytes), context._context)

    @property
    def __cuda_array_interface__(self):
        from attnum._library import ffi
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (int(ffi.cast("intptr_t", self.memory)), False),
                "strides": None, "version": 3}

    def numpy(self):
        from attnum._library import ffi, lib, must
        array = np.empty(self.shape, self.dtype)
        must(lib.atn_download(self.context._context, ffi.from_buffer(array), self.memory, array.nbytes),
             self.context._context)
        return array


class OnDevice(unittest.TestCase):
    def setUp(self):
        from attnum._library import Context
        self.context = Context(device="cuda")
        q, k, v = self.host = [np.random.default_rng(i).standard_normal((1, 2, 16, 4), np.float32) for i in range(3)]
        self.device = [DeviceArray(self.context, x) for x in self.host]

    def empty(self, like):
        return DeviceArray(self.context, np.full_like(like, np.nan))

    def test_calls(self):
        e = np.random.default_rng(4).standard_normal((16, 5), np.float32)
        soft = {"sampling": {"kind": "pool", "height": 4, "width": 4, "stride": 2}, "inverse": "cholesky"}
        for op, options, parameters in (("softmax", {}, ()), ("sima", {}, ()), ("linformer", {"e": e}, ("e",)),
                                        ("soft", soft, ())):
            with self.subTest(op=op):
                (q, k, v), (dq, dk, dv) = self.host, self.device
                if op == "soft":
                    k = dk = None
                y = self.empty(v)
                plan = attnum.Plan.of(op, dq, dk, dv, **options)
                self.assertEqual(plan.device, "cuda")
                self.assertIs(plan(dq, dk, dv, out=y), y)
                self.assertIs(plan.outcome().status, attnum.Status.OK)
                names = ("q", "v") if k is None else ("q", "k", "v")
                gradients = {name: self.empty(v) for name in names} | {name: self.empty(e) for name in parameters}
                plan.backward(dv, dq, dk, dv, out=gradients, parameters=parameters)
                plan.outcome()
                attnum.check(y.numpy(), op=op, q=q, k=k, v=v, dout=v, dtype="f32", **options,
                             gradients={name: x.numpy() for name, x in gradients.items()}).assert_ok()

    def test_bad_input(self):
        q, k, v = self.device
        for sentence, given in (("^out: none, but on CUDA", {"out": None}),
                                ("^k: ndarray, expected", {"k": self.host[1]}),
                                ("^out: ndarray, expected", {"out": self.host[2].copy()})):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(attnum.ArgumentError, sentence):
                attnum.attention("softmax", **{"q": q, "k": k, "v": v, "out": self.empty(self.host[2])} | given)
        plan = attnum.Plan.of("linformer", q, k, v, e=np.ones((16, 5), np.float32))
        with self.assertRaisesRegex(attnum.ArgumentError, r"^out\['q'\]: none, but on CUDA"):
            plan.backward(v, q, k, v)


if os.environ.get("ATTNUM_DEVICE") != "emulated":
    del OnDevice


@unittest.skipUnless("ATTNUM_EMULATED" in os.environ, "ATTNUM_EMULATED does not say where the emulated module is")
class Emulated(unittest.TestCase):
    def test_on_device(self):
        package = pathlib.Path(attnum.__file__).parent
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(package, f"{folder}/attnum", ignore=shutil.ignore_patterns("*.p", "*.so", "program"))
            module = shutil.copy(os.environ["ATTNUM_EMULATED"], f"{folder}/attnum")
            self.assertTrue(os.path.exists(module))
            environment = {name: value for name, value in os.environ.items() if name != "ATTNUM_EMULATED"}
            environment |= {"PYTHONPATH": folder, "ATTNUM_DEVICE": "emulated"}
            done = subprocess.run([sys.executable, __file__, "OnDevice"], env=environment, capture_output=True,
                                  text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Ran 2 tests", done.stderr)


if __name__ == "__main__":
    unittest.main()
