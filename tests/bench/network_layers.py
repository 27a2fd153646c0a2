#!/usr/bin/env python3
"""Records the convolutions of networks that no other list of this folder has, as cases for layers.py.

    tests/bench/network_layers.py network_layers.csv [--networks densenet121,darknet53] [--layers 12]

A network runs once, on tensors that have shapes and no elements. Of its distinct convolutions so many are
taken, evenly from the first to the last, and each is a case forward, as data gradient and as filter
gradient. Needs PyTorch, torchvision and timm.
"""

import argparse
import csv
import pathlib

import timm
import torch
import torchvision

from layers import COLUMNS


def vision(name, **arguments):
    return lambda: torchvision.models.get_model(name, weights=None, **arguments)


def image_model(name):
    return lambda: timm.create_model(name, pretrained=False)


# name: (constructor, shape of the input)
NETWORKS = {
    "densenet121": (vision("densenet121"), (32, 3, 224, 224)),
    "resnext50_32x4d": (vision("resnext50_32x4d"), (32, 3, 224, 224)),
    "regnet_y_3_2gf": (vision("regnet_y_3_2gf"), (32, 3, 224, 224)),
    "efficientnet_v2_s": (vision("efficientnet_v2_s"), (32, 3, 300, 300)),
    "mobilenet_v3_large": (vision("mobilenet_v3_large"), (64, 3, 224, 224)),
    "inception_v3": (vision("inception_v3", init_weights=False), (32, 3, 299, 299)),
    "deeplabv3_resnet50": (vision("deeplabv3_resnet50", weights_backbone=None), (8, 3, 520, 520)),
    "r2plus1d_18": (vision("r2plus1d_18"), (4, 3, 16, 112, 112)),
    "darknet53": (image_model("darknet53"), (32, 3, 256, 256)),
    "hrnet_w18": (image_model("hrnet_w18"), (32, 3, 224, 224)),
    "mobilenet_v2": (vision("mobilenet_v2"), (32, 3, 224, 224)),
    "efficientnet_b0": (vision("efficientnet_b0"), (32, 3, 224, 224)),
    "convnext_tiny": (vision("convnext_tiny"), (32, 3, 224, 224)),
}


def problem(layer, x, y):
    """The line that runs it in Kiln."""
    axes = "dhw"[-len(layer.kernel_size):]
    line = f"g{layer.groups}mb{x.shape[0]}_ic{x.shape[1]}" + "".join(f"i{a}{n}" for a, n in zip(axes, x.shape[2:]))
    line += f"_oc{y.shape[1]}" + "".join(f"o{a}{n}" for a, n in zip(axes, y.shape[2:]))
    values = ("k", layer.kernel_size), ("s", layer.stride), ("p", layer.padding), ("d", [n - 1 for n in layer.dilation])
    return line + "".join("_" + "".join(f"{kind}{a}{n}" for a, n in zip(axes, numbers)) for kind, numbers in values)


def name_of(layer, x):
    taps = "x".join(map(str, layer.kernel_size))
    stride = max(layer.stride)
    return (f"{taps}{f'/{stride}' if stride > 1 else ''} {x.shape[1]}-{layer.out_channels}@{x.shape[-1]}"
            f"{f' g{layer.groups}' if layer.groups > 1 else ''}{f' d{max(layer.dilation)}' if max(layer.dilation) > 1 else ''}")


def convolutions(network, batch):
    """Of each distinct one: its name and line, in the order in which they run."""
    make, (_, *image) = NETWORKS[network]
    found = {}

    def note(layer, inputs, output):
        found.setdefault(problem(layer, inputs[0], output), name_of(layer, inputs[0]))

    model = make().to("meta").eval()
    for module in model.modules():
        if isinstance(module, (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)) and not isinstance(module.padding, str):
            module.register_forward_hook(note)
    model(torch.empty(batch, *image, device="meta"))
    return list(found.items())


def evenly(items, count):
    if len(items) <= count:
        return items
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--networks", default=",".join(NETWORKS), help="some of them, separated by ','; default: all")
    parser.add_argument("--layers", type=int, default=12, help="of each network, at least 2; default: 12")
    parser.add_argument("--type", default="f16")
    parser.add_argument("--layout", default="nhwc", choices=("nchw", "nhwc"))
    parser.add_argument("--math", default="default", help="of f32: default or tf32")
    parser.add_argument("--batch", type=int, help="of every network; default: its own")
    arguments = parser.parse_args()
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# layers of networks: torchvision {torchvision.__version__.split('+')[0]}, timm {timm.__version__}\n")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for network in arguments.networks.split(","):
            batch = arguments.batch or NETWORKS[network][1][0]
            for line, layer in evenly(convolutions(network, batch), max(2, arguments.layers)):
                for direction in ("fwd", "dgrad", "wgrad"):
                    writer.writerow({"suite": network, "layer": layer, "batch": batch,
                                     "operation": "conv", "direction": direction, "type": arguments.type,
                                     "layout": arguments.layout, "math": arguments.math, "contestant": "kiln",
                                     "problem": line})


if __name__ == "__main__":
    main()
