"""Two processes train a fused model over gloo: parameters are the same in both, losses those of the model as it is. With
torch.nn.SyncBatchNorm, which PyTorch has for GPUs alone, they are those of one process that has both parts of the batch;
the parts need not have the same number of images. FSDP shards a fused model, too."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import kiln.torch

STEPS = 10


class Network(nn.Module):
    """All orders of blocks: with and without a convolution, an addition, an activation."""

    def __init__(self, frozen=False):
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.second, self.norm2 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.norm3, self.act, self.last = nn.BatchNorm2d(4), nn.SiLU(), nn.Conv2d(4, 2, 1)
        self.norm4 = nn.BatchNorm2d(2, affine=False, momentum=None)

    def forward(self, x):
        x = self.norm1(self.first(x)).relu()
        x = (self.norm2(self.second(x)) + x).relu()
        return self.norm4(self.last(self.act(self.norm3(x)))).mean((2, 3))


def network():
    torch.manual_seed(0)
    return Network().double().to(memory_format=torch.channels_last)


def batch(step):
    torch.manual_seed(step)
    x = torch.randn(6, 3, 4, 5, dtype=torch.float64) + torch.arange(6).view(6, 1, 1, 1)
    return x.to(memory_format=torch.channels_last), torch.randn(6, 2, dtype=torch.float64)


def train(model, part, weight=1.0, add_gradients=False):
    """The losses of some steps on the images of a part, which the gradient weighs."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05, 0.9)
    losses = []
    for step in range(STEPS):
        x, wanted = batch(step)
        loss = (model(x[part]) - wanted[part]).square().sum() / 6
        (loss * weight).backward()
        if add_gradients:
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses)


def state(model):
    return torch.cat([t.detach().double().flatten() for t in model.state_dict().values()])


def assert_near(got, want, what, bound=1e-9):
    error = ((got - want).abs().max() / want.abs().max()).item()
    assert error < bound, (what, error)


def gathered(tensor):
    both = [torch.empty_like(tensor) for _ in range(2)]
    dist.all_gather(both, tensor)
    return both


def check_ddp(rank):
    half = slice(rank * 3, rank * 3 + 3)
    fused, own = (DistributedDataParallel(wrap(network())) for wrap in (kiln.torch.fuse_training, lambda model: model))
    assert kiln.torch.fused_blocks(fused.module).fused == 4
    want = train(own, half, 2.0)  # DistributedDataParallel takes the mean
    assert_near(train(fused, half, 2.0), want, "losses beside PyTorch's")
    assert_near(state(fused), state(own), "state beside PyTorch's")
    weights = torch.cat([p.detach().flatten() for p in fused.parameters()])
    assert torch.equal(*gathered(weights)), "parameters of the processes differ"

    model = kiln.torch.fuse_training(network().to(memory_format=torch.contiguous_format))  # FSDP takes no others
    fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
    assert kiln.torch.fused_blocks(model).fused == 4
    assert_near(train(model, half, 2.0), want, "losses of FSDP")


def check_synchronized(rank):
    part = slice(0, 4) if rank == 0 else slice(4, 6)
    model = kiln.torch.fuse_training(nn.SyncBatchNorm.convert_sync_batchnorm(network()))
    assert kiln.torch.fused_blocks(model).fused == 4, kiln.torch.fused_blocks(model)
    losses = train(model, part, add_gradients=True)
    dist.all_reduce(losses)
    one = network()
    assert_near(losses, train(one, slice(0, 6)), "losses of SyncBatchNorm")
    assert_near(state(model), state(one), "state of SyncBatchNorm")
    assert torch.equal(*gathered(state(model))), "states of the processes differ"
    model(batch(0)[0][: 2 * rank]).sum().backward()  # a process without an image
    for tensor in (*model.buffers(), *(p.grad for p in model.parameters())):
        assert tensor.isfinite().all()
    model.eval()
    x = batch(1)[0]
    got = model(x)
    assert_near(got, kiln.torch.unfuse(model)(x), "evaluation")


def worker(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.set_num_threads(1)
    check_ddp(rank)
    check_synchronized(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (os.path.join(folder, "store"),), nprocs=2)
    print("two processes agree")
    sys.exit(0)
