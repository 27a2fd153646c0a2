#!/usr/bin/env python3
"""kiln.torch on a GPU, in one command: checks, then figures beside PyTorch's own convolutions (cuDNN
with benchmark=True) in the same process.

    tests/torch/gpu.py                              all
    tests/torch/gpu.py checks                       parity, strides, CUDA graphs, AMP, compile, memory, host time
    tests/torch/gpu.py figures --csv figures.csv    training and inference of ten networks
    tests/torch/gpu.py ddp                          training on 1, 2, 4 and 8 GPUs over NCCL (gpu/ddp.py)

Exits with 77 where there is no GPU. Figures are written line by line, and stop at --seconds.
"""

import argparse
import pathlib
import sys
import unittest

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here / "gpu"), str(here.parents[1] / "src" / "python")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", default=[], help="checks, figures, ddp; default: all")
    parser.add_argument("--only", default="checks", help="of the checks: a name such as checks.Checks.test_compile")
    parser.add_argument("--csv", default="figures.csv", help="where figures go")
    parser.add_argument("--networks", default="", help="some of the figures' networks, separated by ','; small: also without a GPU")
    parser.add_argument(
        "--modes", default="amp,f32,f64,tf32", help="some of amp, f32, f64, tf32, variants (of the policy measure);\n"
        "amp-nchw, tf32-nhwc and so on: training in the other layout"
    )
    parser.add_argument("--batch", type=int, help="training alone, with so many images")
    parser.add_argument("--skip", type=int, default=0, help="so many of the figures' cases at the beginning")
    parser.add_argument("--first", type=int, default=1000, help="after those, only so many of them")
    parser.add_argument("--compile-ahead", action="store_true", help="compile for all figures before the first")
    parser.add_argument("--seconds", type=float, default=3600, help="when figures stop")
    arguments = parser.parse_args()
    parts = arguments.parts or ["checks", "figures", "ddp"]

    import torch

    if torch.cuda.is_available():
        print(torch.cuda.get_device_name(0), "PyTorch", torch.__version__, flush=True)
    elif (parts, arguments.networks) != (["figures"], "small"):  # which tries the program on the host device
        print("skipped: PyTorch finds no GPU")
        return 77
    status = 0
    if "checks" in parts:
        suite = unittest.defaultTestLoader.loadTestsFromNames(arguments.only.split(","))
        result = unittest.TextTestRunner(verbosity=2).run(suite)
        status |= not result.wasSuccessful()
    if "ddp" in parts:
        import ddp

        status |= ddp.main([])
    if "figures" in parts:
        import figures

        figures.main(arguments)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
