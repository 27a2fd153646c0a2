"""The installed package as its page describes it: `full.sh` runs this outside of the checkout, with the
wheel as argument; nothing else does."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[3] / "src" / "python" / "README.md"
WHEEL = None


def run(*command, **environment):
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        raise AssertionError(done.stdout)
    return done.stdout


@unittest.skipUnless(len(sys.argv) > 1 and sys.argv[1].endswith(".whl"), "full.sh runs it")
class Package(unittest.TestCase):
    def test_size(self):
        self.assertLess(pathlib.Path(WHEEL).stat().st_size, 5e6)

    def test_worked_example_as_written(self):
        example = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[0]
        out = run(sys.executable, "-c", example)
        self.assertIn("7 by Kiln, 0 native", out)
        self.assertEqual(len(pathlib.Path("model.manifest").read_text().splitlines()), 7)

    def test_example_of_arrays_as_written(self):
        examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
        run(sys.executable, "-c", next(e for e in examples if "kiln.arrays" in e) + "assert dw.shape == w.shape")

    def test_versions_agree(self):
        code = "import importlib.metadata, kiln; print(importlib.metadata.version('kiln-kernels') == kiln.__version__)"
        self.assertEqual(run(sys.executable, "-c", code), "True\n")

    def test_program(self):
        self.assertIn("kiln ", run(sys.executable, "-m", "kiln", "--version"))
        self.assertIn("Usage: kiln", run(str(pathlib.Path(sys.executable).parent / "kiln"), "--help"))

    def test_one_line_of_the_environment(self):
        code = "import sys, torch; print(sys.modules['kiln.torch'].is_enabled('cuda'))"
        self.assertTrue(run(sys.executable, "-c", code, KILN_TORCH="1").endswith("True\n"))
        code = "import sys, torch; print('kiln.torch' in sys.modules)"
        self.assertTrue(run(sys.executable, "-c", code, KILN_TORCH="0").endswith("False\n"))

    def test_either_is_imported_first(self):
        for first in ("torch", "kiln.torch"):
            code = f"import {first}; import kiln.torch; print(kiln.torch.is_enabled('cuda'))"
            self.assertTrue(run(sys.executable, "-c", code, KILN_TORCH="1").endswith("True\n"), first)
            self.assertTrue(run(sys.executable, "-c", code, KILN_TORCH="0").endswith("False\n"), first)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        WHEEL = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
