#!/usr/bin/env python3
"""kiln.arrays on a GPU: it waits for the stream that a foreign array's __cuda_array_interface__ names.

Needs PyTorch with a GPU, as the producer; exits with 77 without. Seconds.
"""

import pathlib
import sys

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "src" / "python"))


class Foreign:
    def __init__(self, tensor, stream):
        self.tensor = tensor
        self.device = tensor.device.index
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, "stream": stream, "version": 3}


def main() -> int:
    try:
        import torch
    except ImportError:
        print("skipped: no PyTorch")
        return 77
    if not torch.cuda.is_available():
        print("skipped: no GPU")
        return 77
    from kiln import arrays

    w = torch.ones(4, 2, 3, 3, device="cuda")
    y = torch.empty(1, 4, 62, 62, device="cuda")
    x = torch.zeros(1, 2, 64, 64, device="cuda")
    arrays.convolution(x, w, out=y)  # the kernel is there
    producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
    faults = 0
    for trial in range(20):
        value = float(trial + 1)
        torch.cuda.synchronize()
        with torch.cuda.stream(producer):
            torch.cuda._sleep(50_000_000)  # some 30 ms, in which a reader that does not wait reads the old values
            x.fill_(value)
        arrays.convolution(Foreign(x, producer.cuda_stream), w, out=y, stream=consumer.cuda_stream)
        consumer.synchronize()
        faults += not bool((y == 18 * value).all())
    print(f"20 products of another stream, {faults} read too early")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
