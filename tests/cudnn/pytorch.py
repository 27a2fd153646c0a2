#!/usr/bin/env python3
"""A ResNet trains in PyTorch over Kiln's library of the cuDNN API, with NVIDIA's behind it for the rest.

    tests/cudnn/pytorch.py [--library build/src/cudnn/lib/libcudnn.so.9] [--real /path/to/libcudnn.so.9]

The same steps run twice, each in a process of its own: once as PyTorch is, and once with the library
preloaded, KILN_CUDNN_FORWARD naming the real one and TORCH_CUDNN_V8_API_DISABLED=1, so that PyTorch calls
cuDNN's functions and not its graphs. Losses must agree, and Kiln's kernel cache must have been used. Then
PyTorch's batch normalization over cuDNN runs with the library preloaded and without a real one behind it:
its results must be those of double precision. Exits with 77 where there is no GPU.
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


def norms():
    """The largest error of each type, as a share of the largest element: of y, gradients and statistics."""
    import torch
    import torch.nn.functional as F

    # A matrix has statistics of each activation.
    cases = [((64, 48), torch.contiguous_format), ((16, 24, 40), torch.contiguous_format),
             ((8, 32, 14, 14), torch.contiguous_format), ((8, 32, 14, 14), torch.channels_last),
             ((4, 16, 5, 6, 7), torch.channels_last_3d)]
    errors = {}
    # Its cudnn_batch_norm refuses bf16 beside parameters of f32, before it asks cuDNN.
    for dtype in (torch.float32, torch.float64, torch.float16):
        name, of_numbers = str(dtype).removeprefix("torch."), torch.promote_types(dtype, torch.float32)
        errors[name] = 0
        for sizes, memory in cases:
            for training in (True, False):
                torch.manual_seed(0)
                x = (torch.randn(sizes) * 2 + 3).to(dtype).to(memory_format=memory)
                dy = torch.randn(sizes).to(dtype).to(memory_format=memory)
                scale, bias, mean = (torch.randn(sizes[1]).to(of_numbers) for _ in range(3))
                variance = torch.rand(sizes[1]).to(of_numbers) + 0.5

                def results(function, place):
                    at = [place(t.clone(memory_format=torch.preserve_format)) for t in (x, scale, bias, mean, variance)]
                    inputs = [t.requires_grad_() for t in at[:3]]
                    y = function(*inputs, *at[3:])
                    gradients = torch.autograd.grad(y, inputs, place(dy)) if training else ()
                    return [t.detach().double().cpu() for t in (y, *gradients, *at[3:])]

                def by_cudnn(x, w, b, m, v):
                    return torch.ops.aten.cudnn_batch_norm(x, w, b, m, v, training, 0.3, 1e-3)[0]

                def by_torch(x, w, b, m, v):
                    return F.batch_norm(x, m, v, w, b, training, 0.3, 1e-3)

                got, want = results(by_cudnn, lambda t: t.cuda()), results(by_torch, lambda t: t.double())
                worst = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(got, want))
                errors[name] = max(errors[name], worst)
    print(json.dumps(errors))


def run(what="--train", **environment):
    done = subprocess.run([sys.executable, __file__, what], env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def kernels_in(cache, of=b""):
    return sum(of in path.read_bytes() for path in pathlib.Path(cache).rglob("*.kiln"))


def real_library():
    import nvidia.cudnn

    return str(next(pathlib.Path(path) / "lib" / "libcudnn.so.9" for path in nvidia.cudnn.__path__))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--library", default=str(ROOT / "build/src/cudnn/lib/libcudnn.so.9"))
    parser.add_argument("--real", default="", help="default: that of the wheel nvidia-cudnn")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--norms", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        return train()
    if arguments.norms:
        return norms()
    import torch

    if not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU")
        return 77
    native = run()
    with tempfile.TemporaryDirectory() as cache:
        preloaded = dict(LD_PRELOAD=arguments.library, TORCH_CUDNN_V8_API_DISABLED="1", KILN_CACHE_DIR=cache)
        kiln = run(KILN_CUDNN_FORWARD=arguments.real or real_library(), **preloaded)
        kernels, of_norms = kernels_in(cache), kernels_in(cache, b"normalization/")
        errors = run("--norms", **preloaded)
        failed = kernels == 0 or kernels_in(cache, b"normalization/") == 0
    for name, tolerance in (("float32", 1e-5), ("float64", 1e-12), ("float16", 4e-3)):
        failed |= not errors[name] <= tolerance
        print(f"batch normalization {name}: largest error {errors[name]:.1e} (at most {tolerance:.0e})")
    for mode, tolerance in (("f32", 1e-4), ("amp", 5e-3)):
        pairs = list(zip(native["losses"][mode], kiln["losses"][mode]))
        worst = max(abs(a - b) / abs(a) for a, b in pairs)
        failed |= not worst <= tolerance
        print(f"resnet18 {mode}: {STEPS} losses {pairs[0][0]:.5f} .. {pairs[-1][0]:.5f}, "
              f"largest relative difference {worst:.1e} (at most {tolerance:.0e})")
    print(f"cuDNN {native['version']}, through Kiln {kiln['version']}; {kernels} kernels of Kiln's, "
          f"{of_norms} of batch normalization")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
