"""Two GPUs train over NCCL with Kiln's convolutions: the losses of one GPU with the doubled batch, and
how much faster."""

import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

import kiln.torch

STEPS, BATCH = 20, 64


def network():
    """Without batch normalization, whose statistics are a process's own."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 64, 3, 2, 1), nn.ReLU()]
    for width in (64, 128, 256):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)).cuda()


def train(model, x, target, every_loss):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for step in range(STEPS + 10):
        if step == STEPS:
            torch.cuda.synchronize()
            started = time.time()
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        if step < STEPS:
            losses.append(every_loss(loss.detach()).item())
    torch.cuda.synchronize()
    return losses, (time.time() - started) / 10


def data():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2 * BATCH, 3, 128, 128, generator=generator)
    return x.cuda(), torch.randint(0, 10, (2 * BATCH,), generator=generator).cuda()


def worker(rank, store, result):
    torch.cuda.set_device(rank)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=2)
    kiln.torch.enable("wait")
    model = nn.parallel.DistributedDataParallel(network(), device_ids=[rank])
    x, target = data()
    part = slice(rank * BATCH, (rank + 1) * BATCH)

    def mean(loss):
        dist.all_reduce(loss)
        return loss / 2

    outcome = train(model, x[part], target[part], mean)
    if rank == 0:
        torch.save((outcome, kiln.torch.report().native), result)
    dist.destroy_process_group()


def main() -> int:
    if torch.cuda.device_count() < 2:
        print("ddp: skipped, PyTorch finds one GPU")
        return 0
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    kiln.torch.enable("wait")
    x, target = data()
    one, seconds_whole = train(network(), x, target, lambda loss: loss)
    half, seconds_half = train(network(), x[:BATCH], target[:BATCH], lambda loss: loss)
    kiln.torch.disable()
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result")
        mp.spawn(worker, (os.path.join(folder, "store"), result), nprocs=2)
        (two, seconds_two), native = torch.load(result)
    worst = max(abs(a - b) / abs(a) for a, b in zip(one, two))
    print(f"ddp: {STEPS} losses {one[0]:.5f} .. {one[-1]:.5f}, largest relative difference {worst:.1e}, "
          f"native calls {native}\n"
          f"ddp: images a second: one GPU {BATCH / seconds_half:.0f} (batch {BATCH}), "
          f"two {2 * BATCH / seconds_two:.0f}, scaling {2 * seconds_half / seconds_two:.2f} of 2; "
          f"one GPU with the doubled batch {2 * BATCH / seconds_whole:.0f}", flush=True)
    return int(worst > 1e-3 or native != 0)


if __name__ == "__main__":
    raise SystemExit(main())
