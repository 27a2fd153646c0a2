"""Kiln: convolutions whose GPU kernels are generated for exactly the problem at hand.

* ``kiln.torch``: PyTorch's convolutions by Kiln, with one line.
* ``kiln.arrays``: the same operations on the arrays of CuPy, numba, JAX and NumPy, without PyTorch.
* ``python -m kiln``: the program ``kiln``.

Importing this package loads nothing.
"""

from ._library import version

__all__ = ["version"]
