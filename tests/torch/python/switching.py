#!/usr/bin/env python3
"""Switches Kiln on and off while other threads compute convolutions, and checks every result of theirs.

    tests/torch/python/switching.py [PAIRS] [THREADS]     enable() and disable() twice each; default 5000, 3

Needs PyTorch and no GPU. Prints the calls of each thread, and exits with 1 if a result is wrong.
test_systems.py runs some hundred pairs.
"""

import pathlib
import random
import sys
import threading
import time

here = pathlib.Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(here), str(here.parents[2] / "src" / "python")]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import kiln.torch  # noqa: E402


class Work:
    """Threads that compute a convolution and its gradients until they are told to stop."""

    def __init__(self, threads: int) -> None:
        # Sums of small integers are the same whoever adds them up.
        self.x = torch.randint(-3, 4, (1, 8, 20, 20)).float()
        self.w = torch.randint(-3, 4, (16, 8, 3, 3)).float()
        self.want = self.results()
        self.over = False
        self.faults, self.calls = [], [0] * threads
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(threads)]

    def results(self):
        x, w = self.x.clone().requires_grad_(), self.w.clone().requires_grad_()
        y = F.conv2d(x, w, padding=1)
        return y.detach(), *torch.autograd.grad(y.sum(), (x, w))

    def work(self, index: int) -> None:
        while not self.over:
            try:
                if not all(torch.equal(a, b) for a, b in zip(self.results(), self.want)):
                    self.faults.append("a result is wrong")
            except BaseException as error:  # a thread's own would be lost
                self.faults.append(repr(error))
            self.calls[index] += 1

    def wait_for_calls(self) -> None:
        """Returns when each thread has ended a call."""
        before = list(self.calls)
        while any(now == then for now, then in zip(self.calls, before)) and not self.faults:
            time.sleep(5e-4)

    def __enter__(self) -> "Work":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        for thread in self.threads:
            thread.join()


def switch(rounds: int, threads: int) -> Work:
    """Enables and disables Kiln on the CPU twice in each round, beside so many threads."""
    torch.set_num_threads(1)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    with kiln.torch.enabled(devices="cpu"):
        work = Work(threads)  # compiles its kernels
    with work:
        for round_ in range(rounds):
            kiln.torch.enable(devices="cpu")
            time.sleep(random.uniform(0, 1e-3))  # threads are anywhere inside of a call of Kiln's
            kiln.torch.disable()
            with kiln.torch.enabled(devices="cpu"):
                if round_ % 20 == 0:
                    work.wait_for_calls()
    sys.setswitchinterval(interval)
    return work


def main() -> int:
    rounds, threads = [int(a) for a in sys.argv[1:]] + [5000, 3][len(sys.argv) - 1 :]
    work = switch(rounds, threads)
    report = kiln.torch.report()
    print(f"{2 * rounds} pairs of enable() and disable(), {threads} threads: {work.calls} calls, {report.served} results by Kiln, {len(work.faults)} faults")
    for fault in sorted(set(work.faults)):
        print(fault)
    return 1 if work.faults else 0


if __name__ == "__main__":
    sys.exit(main())
