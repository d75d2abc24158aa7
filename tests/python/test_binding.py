# SPDX-License-Identifier: BSD-3-Clause
"""The binding holds everything that the public headers declare, by another reading of them than bind.py's."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import attnum
from attnum import _library
from attnum._library import NAMES, choices, ffi, lib, missing_library


def headers():
    for path in sorted(pathlib.Path(os.environ["ATTNUM_HEADERS"]).glob("*.h")):
        yield path.name, re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


@unittest.skipUnless("ATTNUM_HEADERS" in os.environ, "ATTNUM_HEADERS does not say where the headers are")
class Headers(unittest.TestCase):
    def test_every_function(self):
        found = 0
        for name, text in headers():
            for function in re.findall(r"^[a-z][\w \*]*?\b(atn_\w+)\(", text, flags=re.M):
                with self.subTest(header=name, function=function):
                    self.assertEqual(ffi.typeof(getattr(lib, function)).kind, "function")
                found += 1
        self.assertGreater(found, 60)

    def test_every_type(self):
        for name, text in headers():
            for kind in re.findall(r"(?:^\}|typedef enum \{.*\}|typedef struct \w+) (atn_\w+);", text, flags=re.M):
                with self.subTest(header=name, type=kind):
                    self.assertIn(ffi.typeof(kind).kind, ("struct", "enum"))

    def test_every_enumerator(self):
        found = 0
        for name, text in headers():
            bodies = re.findall(r"enum \{(.*?)\}", text, flags=re.S)
            codes = {word for body in bodies for word in re.findall(r"ATN_\w+", body)}
            codes |= set(re.findall(r"X\((ATN_\w+),", text))
            for code in codes - set(re.findall(r"#\s*define (ATN_\w+)", text)):
                with self.subTest(header=name, code=code):
                    self.assertIsInstance(getattr(lib, code), int)
                found += 1
        self.assertGreater(found, 150)

    def test_every_list(self):
        text = "".join(text for _, text in headers())
        lists = {name.lower() for name in re.findall(r"#define ATN_(\w+)_LIST\(X\)", text)} - {"status"}
        self.assertEqual(set(NAMES), lists)
        entries = re.findall(r'X\((ATN_\w+), "', text.replace("\\\n", " "))
        self.assertEqual({code for rows in NAMES.values() for code in rows}, set(entries))


class Names(unittest.TestCase):
    def test_names_are_the_librarys(self):
        for kind in ("isa", "device", "inverse", "stopping", "stop", "metric", "gradient", "distance", "scale",
                     "soft_passes", "parameter", "sampling", "storage", "dtype"):
            ctype = ffi.typeof(getattr(lib, f"atn_{kind}_name")).args[0]
            for name, value in choices(ctype).items():
                with self.subTest(kind=kind, name=name):
                    self.assertEqual(ffi.string(getattr(lib, f"atn_{kind}_name")(value)).decode(), name)

    def test_statuses(self):
        for status in attnum.Status:
            self.assertEqual(ffi.string(lib.atn_status_name(status)).decode(), f"ATN_{status.name}")
        self.assertEqual(set(attnum.Status), set(ffi.typeof("atn_status").elements))

    def test_operators(self):
        for name, info in attnum.operators().items():
            found = lib.atn_operator_find(name.encode())
            self.assertEqual(choices(ffi.typeof("atn_operator"))[name], found.op)
            self.assertEqual(len(info["variants"]), found.variant_count)
        self.assertIn("backward", attnum.operators()["soft"]["capabilities"])
        self.assertNotIn("causal", attnum.operators()["soft"]["capabilities"])


class MissingLibraries(unittest.TestCase):
    def test_packages(self):
        for library, package in (("libsleef.so.3", "libsleef3"), ("libopenblas.so.0", "libopenblas0"),
                                 ("libpng16.so.16", "libpng16-16"), ("liblapacke.so.3", "liblapacke")):
            sentence = missing_library(f"x: {library}: cannot open shared object file: No such file or directory")
            self.assertTrue(sentence.endswith(f"apt install {package}"), sentence)
        self.assertIsNone(missing_library("undefined symbol: atn_copy"))

    def test_import_says_which(self):
        """A copy of the package whose module asks for a library that is nowhere."""
        package = pathlib.Path(attnum.__file__).parent
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(package, f"{folder}/attnum", ignore=shutil.ignore_patterns("*.p", "program"))
            module = pathlib.Path(copy) / pathlib.Path(_library._binding.__file__).name
            needed = re.search(rb"(libattnum|libsleef)\.so\.(\d)", module.read_bytes())
            module.write_bytes(module.read_bytes().replace(needed[0], needed[1] + b".so.9"))
            done = subprocess.run([sys.executable, "-c", "import attnum"], cwd=folder, capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": folder})
        self.assertIn(f"ImportError: attnum needs the system library {needed[1].decode()}.so.9", done.stderr)


if __name__ == "__main__":
    unittest.main()
