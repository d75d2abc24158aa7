# SPDX-License-Identifier: BSD-3-Clause
"""CUDA's memory, on the emulator of its runtime: the package with a module that is linked to the emulated library, in
a process of its own (`test_cuda.py`, started by the test below). ATTNUM_DEVICE=cuda: on a GPU, without it."""
import ctypes
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


class Exported:
    """The same by DLPack alone, with one more column in memory, or dense, but with strides nonetheless: version 1, or
    with old=True the one before it."""
    alive = 0

    def __init__(self, context, array, old=False, read_only=False, ordinal=0, dense=False):
        wide = np.full((*array.shape[:-1], array.shape[-1] + (not dense)), 7, array.dtype)
        wide[..., :array.shape[-1]] = array
        self.memory, self.shape, self.streams, self.ordinal = DeviceArray(context, wide), array.shape, [], ordinal
        self.strides = [stride // array.itemsize for stride in wide.strides]
        self.old, self.read_only = old, read_only

    def __dlpack_device__(self):
        return 2, self.ordinal

    def __dlpack__(self, *, stream, **options):
        from attnum._dlpack import _ffi
        if self.old and options:
            raise TypeError("an unexpected keyword argument: max_version")
        self.streams.append(stream)
        kind, name = ("managed", b"dltensor") if self.old else ("versioned", b"dltensor_versioned")
        shape, strides = _ffi.new("int64_t[]", self.shape), _ffi.new("int64_t[]", self.strides)
        interface = self.memory.__cuda_array_interface__
        # the data begin 8 bytes before their address and an offset of 8
        dtype = self.memory.dtype
        managed = _ffi.new(f"struct {kind} *", {"array": {
            "data": _ffi.cast("void *", interface["data"][0] - 8), "device": 2, "ordinal": self.ordinal,
            "dimensions": len(self.shape), "kind": {"f": 2, "b": 6}[dtype.kind], "bits": 8 * dtype.itemsize, "lanes": 1,
            "shape": shape, "strides": strides, "offset": 8}})
        if not self.old:
            managed.major, managed.flags = 1, int(self.read_only)
        release = _ffi.callback(f"void (*)(struct {kind} *)", lambda _: self.count(-1))
        managed.release, self.kept = release, (managed, shape, strides, release, name)
        self.count(1)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(int(_ffi.cast("intptr_t", managed)), name, None)

    def count(self, change):
        Exported.alive += change

    def numpy(self):
        wide, columns = self.memory.numpy(), self.shape[-1]
        assert (wide[..., columns:] == np.array(7, wide.dtype)).all(), "something was written beside the view"
        return wide[..., :columns]


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
                gradients = {name: self.empty(v) for name in names} | {
                    name: Exported(self.context, np.full_like(e, np.nan), dense=True) for name in parameters}
                plan.backward(dv, dq, dk, dv, out=gradients, parameters=parameters)
                plan.outcome()
                attnum.check(y.numpy(), op=op, q=q, k=k, v=v, dout=v, dtype="f32", **options,
                             gradients={name: x.numpy() for name, x in gradients.items()}).assert_ok()

    def test_dlpack(self):
        wanted = attnum.attention("softmax", *self.device, out=(y := self.empty(self.host[2]))) and y.numpy()
        for old in (False, True):
            with self.subTest(old=old):
                q, k, v = (Exported(self.context, x, old) for x in self.host)
                out = Exported(self.context, np.zeros_like(self.host[2]), old)
                plan = attnum.Plan.of("softmax", q, k, v)
                self.assertEqual(plan.device, "cuda")
                self.assertIs(plan(q, k, v, out=out), out)
                plan.outcome()
                np.testing.assert_array_equal(out.numpy(), wanted)
                # shapes need no stream to wait for; a call needs the plan's, here the legacy default stream
                self.assertEqual([x.streams for x in (q, out)], [[-1, 1], [1]])
                given = attnum.Plan.of("softmax", q, k, v, stream=2)
                given(q, k, v, out=out)
                given.outcome()
                self.assertEqual(out.streams[-1], 2)
        q, k, v = (Exported(self.context, x) for x in self.host)
        for sentence, given in (("^out: read-only", {"out": Exported(self.context, self.host[2], read_only=True)}),
                                ("device='cuda:1'", {"q": Exported(self.context, self.host[0], ordinal=1)}),
                                ("^device: 'cuda:x'", {"device": "cuda:x"}),
                                ("^q: Exported in memory of cuda, expected", {"device": "cpu"})):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(attnum.Error, sentence):
                attnum.attention("softmax", **{"q": q, "k": k, "v": v, "out": v} | given)
        self.assertEqual(Exported.alive, 0, "what DLPack lent was not given back")

    def test_masks(self):
        there = np.arange(16)[None] < 11
        y = self.empty(self.host[2])
        plan = attnum.Plan.of("softmax", *self.device, padding=True)
        plan(*self.device, out=y, key_mask=Exported(self.context, there, dense=True))
        plan.outcome()
        q, k, v = self.host
        attnum.check(y.numpy(), op="softmax", q=q, k=k, v=v, dtype="f32", key_mask=there).assert_ok()

    def test_matrices(self):
        """As on the CPU, up to rounding of the same sums in another order."""
        q, k, _ = self.host
        dq, dk = Exported(self.context, q), self.device[1]

        def both(function, shape, *arguments, **options):
            """The device's result and the CPU's; the arrays are given as (host, device)."""
            out = self.empty(np.empty(shape, np.float32))
            found = function(*(device for _, device in arguments), out=out, **options)
            return out.numpy(), function(*(host for host, _ in arguments), **options), found

        u = 2.0 ** -24
        found, wanted, _ = both(attnum.kernel, (1, 2, 16, 16), (q, dq), (k, dk))
        self.assertTrue((abs(found - wanted) <= 200 * u * wanted).all())  # |x - y|^2 s is of order 10 at most
        weights = np.random.default_rng(5).standard_normal((4, 4, 2, 2), np.float32)
        grid = {"height": 4, "width": 4, "stride": 2}
        for kind, m, options in (("pool", 4, grid), ("conv", 4, grid | {"weights": weights}),
                                 ("indices", 3, {"indices": [3, 1, 15]})):
            with self.subTest(kind=kind):
                found, wanted, _ = both(attnum.sample, (1, 2, m, 4), (q, dq), kind=kind, **options)
                self.assertTrue((abs(found - wanted) <= 16 * u * 4 * abs(weights).max() * abs(q).max()).all())
        a = attnum.kernel(q[:, :, :4].copy()) + np.eye(4, dtype=np.float32)
        da = DeviceArray(self.context, a)
        x, wanted, result = both(attnum.inverse, a.shape, (a, da), method="nr-paper", trace=("residual",))
        self.assertTrue((abs(x - wanted.x) <= 100 * u).all())  # the condition is 5 at most
        self.assertEqual([len(t["residual"]) for t in result.traces], [len(t["residual"]) for t in wanted.traces])
        backward, wanted, _ = both(attnum.inverse_backward, a.shape, (a, da), (a, da), method="cholesky")
        self.assertTrue((abs(backward - wanted) <= 100 * u * abs(wanted).max()).all())
        with self.assertRaisesRegex(attnum.UnsupportedError, "CPU|cpu|CUDA|cuda"):
            attnum.inverse_apply(da, da, out=self.empty(a))
        with self.assertRaisesRegex(attnum.ArgumentError, "^out: none, but on CUDA"):
            attnum.kernel(dq)
        self.assertEqual(Exported.alive, 0)

    def test_streams_of_others(self):
        """Who shows memory with its stream (the interface's version 3) is waited for."""
        from attnum import _library
        shown = DeviceArray.__cuda_array_interface__.fget(self.device[0])
        waited, synchronise = [], _library.lib.atn_synchronise
        library = unittest.mock.Mock(wraps=_library.lib, atn_synchronise=lambda c: waited.append(c) or synchronise(c))
        for stream, waits in ((None, 0), (1, 0), (2, 1)):
            x = type("Device", (), {"__cuda_array_interface__": shown | {"stream": stream}})()
            with self.subTest(stream=stream), unittest.mock.patch.object(_library, "lib", library):
                waited.clear()
                _library.interface("q", x, "cuda", 1)
                self.assertEqual(len(waited), waits)

    def test_bad_input(self):
        q, k, v = self.device
        for sentence, given in (("^out: none, but on CUDA", {"out": None}),
                                ("^k: ndarray in memory of cpu, expected an array in memory of cuda", {"k": self.host[1]}),
                                ("^out: ndarray in memory of cpu, expected", {"out": self.host[2].copy()})):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(attnum.ArgumentError, sentence):
                attnum.attention("softmax", **{"q": q, "k": k, "v": v, "out": self.empty(self.host[2])} | given)
        plan = attnum.Plan.of("linformer", q, k, v, e=np.ones((16, 5), np.float32))
        with self.assertRaisesRegex(attnum.ArgumentError, r"^out\['q'\]: none, but on CUDA"):
            plan.backward(v, q, k, v)


if os.environ.get("ATTNUM_DEVICE") not in ("emulated", "cuda"):
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
        self.assertIn("Ran 6 tests", done.stderr)


if __name__ == "__main__":
    unittest.main()
