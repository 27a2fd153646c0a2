"""Runs the tests of this folder. Exits with 77, which CTest counts as skipped, where PyTorch 2.10 or
later is not installed for this Python."""

import os
import pathlib
import sys
import unittest

folder = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(folder))
if not os.environ.get("KILN_TEST_INSTALLED"):  # then the package is the installed one
    sys.path.insert(0, str(folder.parents[2] / "src" / "python"))


def main() -> int:
    try:
        import torch
    except ImportError as error:
        print(f"skipped: {sys.executable} has no PyTorch ({error})")
        return 77
    if not hasattr(torch.library, "get_kernel") or torch.__version__ < "2.1":
        print(f"skipped: PyTorch {torch.__version__} is older than 2.10")
        return 77
    names = sys.argv[1:] or ["test_*.py"]
    suite = unittest.TestSuite()
    for name in names:
        suite.addTests(unittest.defaultTestLoader.discover(str(folder), pattern=name))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
