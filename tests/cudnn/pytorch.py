#!/usr/bin/env python3
"""A ResNet trains in PyTorch over Kiln's library of the cuDNN API, with NVIDIA's behind it for the rest.

    tests/cudnn/pytorch.py [--library build/src/cudnn/lib/libcudnn.so.9] [--real /path/to/libcudnn.so.9]

The same steps run twice, each in a process of its own: once as PyTorch is, and once with the library
preloaded, KILN_CUDNN_FORWARD naming the real one and TORCH_CUDNN_V8_API_DISABLED=1, so that PyTorch calls
cuDNN's functions and not its graphs. Losses must agree, and Kiln's kernel cache must have been used.
Exits with 77 where there is no GPU.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

STEPS = 10
ROOT = pathlib.Path(__file__).resolve().parents[2]


def train():
    import torch
    import torchvision

    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    losses = {}
    for mode in ("f32", "amp"):
        torch.manual_seed(0)
        model = torchvision.models.resnet18().cuda()
        x, target = torch.randn(16, 3, 128, 128, device="cuda"), torch.arange(16, device="cuda")
        if mode == "amp":
            model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, enabled=mode == "amp")
        losses[mode] = []
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.float16, enabled=mode == "amp"):
                loss = torch.nn.functional.cross_entropy(model(x), target)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses[mode].append(loss.item())
    print(json.dumps({"version": torch.backends.cudnn.version(), "losses": losses}))


def run(**environment):
    done = subprocess.run([sys.executable, __file__, "--train"], env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def real_library():
    import nvidia.cudnn

    return str(next(pathlib.Path(path) / "lib" / "libcudnn.so.9" for path in nvidia.cudnn.__path__))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--library", default=str(ROOT / "build/src/cudnn/lib/libcudnn.so.9"))
    parser.add_argument("--real", default="", help="default: that of the wheel nvidia-cudnn")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        return train()
    import torch

    if not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU")
        return 77
    native = run()
    with tempfile.TemporaryDirectory() as cache:
        kiln = run(LD_PRELOAD=arguments.library, KILN_CUDNN_FORWARD=arguments.real or real_library(),
                   TORCH_CUDNN_V8_API_DISABLED="1", KILN_CACHE_DIR=cache)
        kernels = sum(1 for _ in pathlib.Path(cache).rglob("*.kiln"))
    failed = kernels == 0
    for mode, tolerance in (("f32", 1e-4), ("amp", 5e-3)):
        pairs = list(zip(native["losses"][mode], kiln["losses"][mode]))
        worst = max(abs(a - b) / abs(a) for a, b in pairs)
        failed |= not worst <= tolerance
        print(f"resnet18 {mode}: {STEPS} losses {pairs[0][0]:.5f} .. {pairs[-1][0]:.5f}, "
              f"largest relative difference {worst:.1e} (at most {tolerance:.0e})")
    print(f"cuDNN {native['version']}, through Kiln {kiln['version']}; {kernels} kernels of Kiln's")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
