"""Kiln: convolutions whose GPU kernels are generated for exactly the problem at hand.

* ``kiln.torch``: PyTorch's convolutions by Kiln, with one line.
* ``kiln.arrays``: the same operations on the arrays of CuPy, numba, JAX and NumPy, without PyTorch.
* ``python -m kiln``: the program ``kiln``.
* ``kiln.__version__`` and ``kiln.version()``: the version of libkiln, such as ``"0.2.0"``.

Importing this package loads nothing; ``__version__`` loads libkiln.
"""

from ._library import version

__all__ = ["version"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        return version()
    raise AttributeError(f"module 'kiln' has no attribute {name!r}")
