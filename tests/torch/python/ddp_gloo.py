"""Two processes train over gloo with Kiln's convolutions: the gradients are the same in both, those
of one process with the doubled batch, and their layout is the parameters', so that nothing is copied."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

import kiln.torch


def network():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 1))
    return model.to(memory_format=torch.channels_last)


def data():
    torch.manual_seed(1)
    return torch.randn(8, 3, 8, 8).to(memory_format=torch.channels_last)


def worker(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    kiln.torch.enable(devices="cpu")
    model = nn.parallel.DistributedDataParallel(network())
    model(data()[rank * 4 : rank * 4 + 4]).pow(2).mean().backward()
    weight = model.module[0].weight
    assert weight.grad.stride() == weight.stride(), (weight.grad.stride(), weight.stride())
    gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
    both = [torch.empty_like(gradient) for _ in range(2)]
    dist.all_gather(both, gradient)
    assert torch.equal(*both), "the processes differ"
    assert kiln.torch.report().native == 0, kiln.torch.report()
    whole = network()
    whole(data()).pow(2).mean().backward()
    right = torch.cat([p.grad.flatten() for p in whole.parameters()])
    error = ((gradient - right).abs().max() / right.abs().max()).item()
    assert error < 1e-5, error
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (os.path.join(folder, "store"),), nprocs=2)
    print("two processes agree")
    sys.exit(0)
