"""``python -m kiln ...``: the program ``kiln`` of this package."""

import os
import sys

from . import _library


def main() -> None:
    program = _library.program()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
