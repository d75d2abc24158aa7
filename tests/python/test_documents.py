# SPDX-License-Identifier: BSD-3-Clause
"""The examples of python/README.md, as they stand there, say what they say."""
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import unittest


@unittest.skipUnless("ATTNUM_HEADERS" in os.environ, "ATTNUM_HEADERS does not say where the sources are")
class Readme(unittest.TestCase):
    def test_examples(self):
        text = (pathlib.Path(os.environ["ATTNUM_HEADERS"]).parents[1] / "python/README.md").read_text()
        blocks = [block for block in re.findall(r"```python\n(.*?)```", text, flags=re.S) if "import attnum" in block]
        self.assertEqual(len(blocks), 3)
        for block in blocks:
            if "torch" in block and importlib.util.find_spec("torch") is None:
                continue
            shown, said = io.StringIO(), re.findall(r"^print.*# (\w+(?: \[.*\])?)", block, flags=re.M)
            with contextlib.redirect_stdout(shown):
                exec(block, {})
            lines = shown.getvalue().splitlines()
            self.assertTrue(lines[0].startswith(said[0]), f"{lines[0]}, but the page says {said[0]}")


if __name__ == "__main__":
    unittest.main()
