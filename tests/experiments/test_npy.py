#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_npy.py NPY_ECHO: .npy files against NumPy itself. What NumPy writes is read with the same
bits or refused with one line; what npy_write writes, NumPy loads with the same bits, mapped too.
Exits 77 without NumPy."""
import os
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy as np
except ImportError:
    debian = "/usr/bin/python3"  # where python3-numpy is, if another Python comes first
    if os.access(debian, os.X_OK) and os.path.realpath(sys.executable) != os.path.realpath(debian):
        os.execv(debian, [debian] + sys.argv)
    print("no NumPy")
    sys.exit(77)

echo = os.path.realpath(sys.argv[1])
checks = failures = 0
draw = np.random.default_rng(1)
SHAPES = [(2, 3), (1, 1), (17, 1), (1, 17), (2, 3, 5), (2, 3, 4, 5), (1, 2, 1, 3)]
FLOATS = ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8"]


def check(holds, what):
    global checks, failures
    checks += 1
    if not holds:
        failures += 1
        print("FAIL ", what)


def run(*arguments, data=b""):
    return subprocess.run([echo, *map(str, arguments)], input=data, capture_output=True)


def values(dtype, shape):
    """All kinds of finite numbers of a dtype: random bits with the exponents of infinity left out."""
    size = np.dtype(dtype).itemsize
    bits = np.frombuffer(draw.bytes(size * int(np.prod(shape))), dtype=f"u{size}").reshape(shape)
    array = bits.view(f"f{size}").copy()
    array[~np.isfinite(array)] = -0.0
    return array.astype(dtype)


def save(array, version=(1, 0), name="x.npy"):
    with open(name, "wb") as file:
        np.lib.format.write_array(file, array, version=version)


def expect_read(array, what, name="x.npy"):
    result = run("read", name)
    check(result.returncode == 0 and not result.stderr, f"{what}: {result.stderr}")
    line, _, data = result.stdout.partition(b"\n")
    shape = (1,) * (4 - array.ndim) + array.shape
    check(line.decode() == " ".join([array.dtype.str, *map(str, shape)]), f"{what}: says {line}")
    check(data == array.astype("<f8").tobytes(), f"{what}: the same bits")


def expect_refused(fragment, what, name="x.npy"):
    result = run("read", name)
    text = result.stderr.decode()
    check(result.returncode == 3 and not result.stdout, f"{what}: exit {result.returncode}")
    check(text.count("\n") == 1 and f"{name}: {fragment}" in text, f"{what}: said {text!r}")


def reads_what_numpy_writes():
    for dtype in FLOATS:
        for shape in SHAPES:
            for order in "CF":
                for version in [(1, 0), (2, 0), (3, 0)]:
                    array = np.array(values(dtype, shape), order=order)
                    save(array, version)
                    expect_read(array, f"{dtype} {shape} {order} {version}")
    for dtype in FLOATS:
        whole = values(dtype, (4, 6, 8, 10))
        views = {"steps": whole[::2, 1::2, ::3, ::-1], "transposed": whole.transpose(2, 0, 3, 1),
                 "one row": whole[1, 2, 3:4], "broadcast": np.broadcast_to(whole[0, 0, :1], (5, 10)),
                 "new axis": whole[0, 0, :, None, :], "swapped": whole[0].swapaxes(0, 2)}
        for name, view in views.items():
            np.save("x.npy", view)
            expect_read(view, f"{dtype}, a view: {name}")


def every_half():
    bits = np.arange(65536, dtype="u2")
    halves = bits.view("f2")[np.isfinite(bits.view("f2"))].reshape(-1, 2)
    for dtype in ["<f2", ">f2"]:
        save(halves.astype(dtype))
        expect_read(halves.astype(dtype), f"every {dtype}")


def refuses_what_it_cannot_mean():
    two = (2, 2)
    dtypes = {t: np.zeros(two, t) for t in ["<i4", ">i8", "|u1", "|b1", "<c8", "<c16", "|S3", "<U2",
                                            "<M8[s]", "<m8[s]"]}
    for name, array in dtypes.items():
        save(array)
        expect_refused(f"descr: dtype '{name}'", name)
    save(np.zeros(two, np.longdouble))
    expect_refused(f"descr: dtype '{np.dtype(np.longdouble).str}'", "long double")
    for name in ["|V2", "<V2"]:  # as ml_dtypes' bfloat16 is saved
        save(np.zeros(two, "|V2"))
        data = open("x.npy", "rb").read().replace(b"|V2", name.encode())
        open("x.npy", "wb").write(data)
        expect_refused(f"descr: dtype '{name}'", name)
        check(b"save bfloat16 as f4" in run("read", "x.npy").stderr, f"{name}: says what to do")
    np.save("x.npy", np.array([[None, 1]]), allow_pickle=True)
    expect_refused("descr: dtype '|O'", "objects")
    save(np.zeros(two, [("a", "<f4"), ("b", "<f8")]))
    expect_refused("header: ", "a record")
    save(np.zeros(two, [(f"field_{i}", "<f4") for i in range(5000)]), (2, 0))
    expect_refused("header length: ", "a huge header")
    for shape in [(), (3,), (1, 2, 3, 4, 5)]:
        save(np.zeros(shape))
        expect_refused("shape: ", f"shape {shape}")
    for shape in [(0, 3), (3, 0), (2, 0, 3), (0, 0)]:
        save(np.zeros(shape))
        expect_refused("shape: a dimension of 0", f"shape {shape}")
    for value, name in [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")]:
        for dtype in FLOATS:
            array = np.zeros((3, 4), dtype)
            array[1, 2] = value
            save(np.asfortranarray(array))
            expect_refused(f"element [1, 2] is {name}", f"{dtype} {name}")


def numpy_reads_what_is_written():
    for dtype, code in [("f16", "<f2"), ("f32", "<f4"), ("f64", "<f8")]:
        for shape in SHAPES + [(1,), (7,), (100003,)]:
            array = values(code, shape)
            array.flat[0] = np.nan  # what is measured may be
            if os.path.exists("y.npy"):
                os.remove("y.npy")
            result = run("write", dtype, ".", "y.npy", *shape, data=array.tobytes())
            what = f"written: {dtype} {shape}"
            check(result.returncode == 0 and not result.stderr, f"{what}: {result.stderr}")
            for mode in [None, "r"]:
                again = np.load("y.npy", mmap_mode=mode)
                check(again.dtype == np.dtype(code) and again.shape == shape, f"{what}: shape, dtype")
                check(again.tobytes() == array.tobytes(), f"{what}: the same bits")
                check(again.flags.aligned and again.flags.c_contiguous, f"{what}: aligned")
            check(again.offset % 64 == 0, f"{what}: data at {again.offset}")
    check(os.listdir(".").count("y.npy") == 1 and len(os.listdir(".")) == 2, "no other file is left")


def archives():
    """What savez writes is read and written again; both archives are whole to zipfile as well."""
    arrays = {f"{dtype[1:]}.{len(shape)}": values(dtype, shape) for dtype in ("<f2", "<f4", "<f8")
              for shape in SHAPES + [(1,), (7,)]}
    np.savez("x.npz", **arrays)
    result = run("copy", "x.npz", ".", "y.npz")
    check(result.returncode == 0 and not result.stderr, f"savez: {result.stderr}")
    again = np.load("y.npz")
    check(sorted(again.files) == sorted([*arrays, "metadata.json"]), "savez: the same names")
    for name, array in arrays.items():
        check(again[name].shape == array.shape and again[name].tobytes() == array.astype("<f8").tobytes(),
              f"savez: {name}")
    with zipfile.ZipFile("y.npz") as archive:
        check(archive.testzip() is None, "written: zipfile's check sums")
    for save_as, what in [(np.savez_compressed, "compressed"), (lambda name, **a: np.save(open(name, "wb"), a["x"]), "npy")]:
        save_as("z.npz", x=np.ones((50, 2)))
        result = run("copy", "z.npz", ".", "y.npz")
        check(result.returncode == 3 and result.stderr.count(b"\n") == 1 and b"z.npz" in result.stderr,
              f"{what}: {result.returncode} {result.stderr}")
    for name in ("x.npz", "y.npz", "z.npz"):
        os.remove(name)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for step in [reads_what_numpy_writes, every_half, refuses_what_it_cannot_mean,
                 numpy_reads_what_is_written, archives]:
        step()
    os.chdir("/")
print(f"NumPy {np.__version__}: {checks} checks, {failures} failed")
sys.exit(1 if failures or not checks else 0)
