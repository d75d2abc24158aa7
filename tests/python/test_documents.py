# SPDX-License-Identifier: BSD-3-Clause
"""The scripts of docs/, the blocks of python/README.md and gnuplot's command do what the pages say."""
import ast
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import attnum
from attnum import _program

SOURCE = pathlib.Path(os.environ.get("ATTNUM_HEADERS", "/")).parents[1] if "ATTNUM_HEADERS" in os.environ else None


def lacking(text):
    """The modules that a text imports and that are not here."""
    names = {name.partition(".")[0] for line in re.findall(r"^(?:import|from) ([\w., ]+?)(?: import .*)?$", text, re.M)
             for name in line.split(", ")}
    return sorted(name for name in names if importlib.util.find_spec(name) is None)


@unittest.skipUnless(SOURCE, "ATTNUM_HEADERS does not say where the sources are")
class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, *command):
        path = os.path.dirname(shutil.which(_program.path())) + os.pathsep + os.environ.get("PATH", "")
        done = subprocess.run(command, cwd=self.folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Scripts(InFolder):
    def run_script(self, name):
        path = SOURCE / "docs" / name
        text = path.read_text()
        if lacking(text):
            self.skipTest(f"{', '.join(lacking(text))}: not installed")
        body = [node for node in ast.parse(text).body[1:] if not isinstance(node, (ast.Import, ast.ImportFrom))]
        self.assertLessEqual(sum(node.end_lineno - node.lineno + 1 for node in body), 10, "lines without imports")
        return self.run_program(sys.executable, str(path))

    def test_every_script_is_here(self):
        tested = {name.removeprefix("test_") + ".py" for name in dir(self) if hasattr(self, name)}
        scripts = {path.name for path in (SOURCE / "docs").glob("*.py")} - {"reference.py"}
        self.assertLessEqual(scripts, tested)
        for name in scripts:
            self.assertIn(f"]({name})", (SOURCE / "docs/README.md").read_text())

    def test_check_my_kernel(self):
        out = self.run_script("check_my_kernel.py")
        said = re.search(r"# (FAIL \[.*\])$", (SOURCE / "docs/check_my_kernel.py").read_text(), re.M)[1]
        self.assertEqual(out.splitlines()[0], said)
        self.assertIn("norm=none", out.partition("what else it could be")[2])

    def test_inspect_my_model(self):
        lines = self.run_script("inspect_my_model.py").splitlines()
        self.assertEqual([line.partition(" ")[0] for line in lines], ["layers.0.self_attn", "layers.1.self_attn"])
        self.assertTrue(all("|AXA - A|/|A|" in line for line in lines), lines)
        self.assertIn('<details id="layers.1.self_attn">', (self.folder / "model.html").read_text())

    def test_replot_a_figure(self):
        self.run_script("replot_a_figure.py")
        self.assertEqual((self.folder / "curves.png").read_bytes()[:4], b"\x89PNG")
        self.assertGreater(len(attnum.read(self.folder / "results/convergence/curves.csv")["stage"]), 100)

    def test_soft_with_autograd(self):
        self.assertEqual(self.run_script("soft_with_autograd.py"), "torch.Size([2, 4, 196, 32]) True OK\n")


class Gnuplot(InFolder):
    def test_command(self):
        """The page's command draws; given what the program gives, it draws the same, of several files too."""
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is not installed")
        command = re.search(r"^gnuplot -e .*$", (SOURCE / "docs/README.md").read_text(), re.M)[0]
        (self.folder / "experiments").symlink_to(SOURCE / "experiments")
        for name, options in (("convergence/curves", ["--input", "photos", "--variant", "nr-paper", "--dtype", "f64"]),
                              ("convergence/precision", ["--input", "photos"]), ("spectral/sampling", ["--input", "iid"]),
                              ("attention/maps", ["--stage", "3"]), ("networks/maps", []),
                              ("networks/accuracy", ["--network", "sima"]), ("networks/epochs", [])):
            with self.subTest(name=name):
                self.run_program(_program.path(), "run", name, "--quick", *options)
                replot = command.replace("convergence/curves", name)
                self.run_program("sh", "-c", replot)
                csv = self.folder / f"results/{name}.csv"
                self.assertEqual(csv.with_suffix(".csv.png").read_bytes()[:4], b"\x89PNG")
                own = csv.with_suffix(".svg").read_text()
                below = re.search(name + " --[^<]*", own)[0].strip()  # the run
                self.run_program("sh", "-c", replot.replace('.csv\'"', f".csv'; terminal='svg'; run='{below}'\""))
                self.assertEqual(csv.with_suffix(".csv.svg").read_text(), own)


class Readme(InFolder):
    def blocks(self, word):
        text = (SOURCE / "python/README.md").read_text()
        found = [block for block in re.findall(r"```python\n(.*?)```", text, flags=re.S) if word in block]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_number(self):
        self.assertEqual((SOURCE / "python/README.md").read_text().count("```python"), 3)

    def test_soft(self):
        block = self.blocks("Plan.of")
        shown, said = io.StringIO(), re.search(r"^print.*# (\w+)", block, flags=re.M)[1]
        with contextlib.redirect_stdout(shown):
            exec(block, {})
        self.assertEqual(shown.getvalue().split()[0], said)

    def test_pytest(self):
        block = self.blocks("pytest.mark.attnum")
        if lacking(block):
            self.skipTest("pytest is not installed")
        (self.folder / "test_kernel.py").write_text(
            "import attnum\n\ndef my_kernel(q, k, v):\n"
            "    return attnum.attention('sima', q, k, v, layout='bnhd', variant='code')\n\n" + block)
        self.assertIn("2 passed", self.run_program(sys.executable, "-m", "pytest", "-p", "no:cacheprovider",
                                                   *(() if attnum.__version__ != "unknown" else ("-p", "attnum._pytest"))))

    def test_capture(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("PyTorch is not installed")
        script = ("import attnum.torch, torch\nimages = torch.randn(1, 16, 8)\n"
                  "model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, batch_first=True), 1)\n")
        self.run_program(sys.executable, "-c", script + self.blocks("attnum.torch.capture"))
        self.assertTrue((self.folder / "model.html").exists() and (self.folder / "tokens").is_dir())


del InFolder

if __name__ == "__main__":
    unittest.main()
