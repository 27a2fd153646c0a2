"""Generates small models for differential tests of whatever rewrites a model.

A model is a random program over named tensors: convolutions, norms, activations, additions, views and writes in
place, in branches, some of it in submodules with hooks, parametrizations or shared weights. Its layers have some
thirty shapes, so that kernels repeat.

    model, x = models.generate(seed)

``model.text()`` is the program, for a failure's report.
"""

from __future__ import annotations

import operator
import random
import warnings
from typing import Any, Callable, Dict, List, Tuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, prune

# Channels of every tensor, by dimensions of space, and the shapes that layers have: each keeps a tensor's sizes, so
# that any two can be added.
CHANNELS, SIZES = 4, {1: (9,), 2: (6, 5), 3: (4, 3, 3)}
SHAPES: Dict[int, List[Dict[str, Any]]] = {
    1: [dict(kernel_size=3, padding=1), dict(kernel_size=1), dict(kernel_size=3, padding=2, dilation=2),
        dict(kernel_size=3, padding=1, groups=2), dict(kernel_size=3, padding="same")],
    2: [dict(kernel_size=3, padding=1), dict(kernel_size=1), dict(kernel_size=3, padding=2, dilation=2),
        dict(kernel_size=3, padding=1, groups=2), dict(kernel_size=3, padding=1, groups=4), dict(kernel_size=(1, 3), padding=(0, 1)),
        dict(kernel_size=3, padding="same"), dict(kernel_size=1, padding="valid"),
        dict(kernel_size=3, padding=1, padding_mode="circular"), dict(kernel_size=1, bias=False),
        dict(kernel_size=3, padding=1, bias=False)],
    3: [dict(kernel_size=3, padding=1), dict(kernel_size=1, groups=2)],
}
TRANSPOSED: Dict[int, List[Dict[str, Any]]] = {
    1: [dict(kernel_size=3, padding=1), dict(kernel_size=3, padding=1, groups=2)],
    2: [dict(kernel_size=3, padding=1), dict(kernel_size=1, groups=2), dict(kernel_size=3, padding=1, groups=2),
        dict(kernel_size=3, padding=1, groups=4, bias=False)],
    3: [dict(kernel_size=1, groups=2)],
}
CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
CONV_TRANSPOSE = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}

ACTIVATIONS: List[Callable[[], nn.Module]] = [
    nn.ReLU, lambda: nn.ReLU(inplace=True), nn.ReLU6, nn.Sigmoid, nn.Tanh, lambda: nn.LeakyReLU(0.2, inplace=True),
    nn.ELU, nn.GELU, lambda: nn.GELU(approximate="tanh"), nn.SiLU, lambda: nn.SiLU(inplace=True), nn.Hardswish, nn.Mish,
    nn.Softplus, nn.Dropout, nn.Identity,
]
FUNCTIONS: Dict[str, Callable[[Any], Any]] = {
    "F.relu(x)": lambda x: F.relu(x),
    "F.relu(x, True)": lambda x: F.relu(x, True),
    "F.relu(input=x)": lambda x: F.relu(input=x),
    "F.relu(x, inplace=True)": lambda x: F.relu(x, inplace=True),
    "F.gelu(x, approximate='tanh')": lambda x: F.gelu(x, approximate="tanh"),
    "x.relu()": lambda x: x.relu(),
    "x.relu_()": lambda x: x.relu_(),
    "x.sigmoid_()": lambda x: x.sigmoid_(),
    "x.mul_(0.5)": lambda x: x.mul_(0.5),
    "torch.tanh(x)": lambda x: torch.tanh(x),
    "F.silu(x)": lambda x: F.silu(x),
    "x * 0.5": lambda x: x * 0.5,
}
ADDITIONS: Dict[str, Callable[[Any, Any], Any]] = {
    "a + b": lambda a, b: a + b,
    "torch.add(a, b)": lambda a, b: torch.add(a, b),
    "torch.add(a, other=b)": lambda a, b: torch.add(a, other=b),
    "torch.add(a, b, alpha=2)": lambda a, b: torch.add(a, b, alpha=2),
    "a.add(b)": lambda a, b: a.add(b),
    "a += b": lambda a, b: operator.iadd(a, b),
    "a.add_(b)": lambda a, b: a.add_(b),
}
# What another tensor makes of a tensor: a view of it, or of smaller sizes that broadcast, or of another type.
VIEWS: Dict[str, Callable[[Any], Any]] = {
    "x.view(x.shape)": lambda x: x.view(x.shape),
    "x[:]": lambda x: x[:],
    "x.transpose(0, 1).transpose(0, 1)": lambda x: x.transpose(0, 1).transpose(0, 1),
    "x.detach()": lambda x: x.detach(),
}
BROADCASTS: Dict[str, Callable[[Any], Any]] = {
    "x.mean()": lambda x: x.mean(),
    "x.mean(-1, keepdim=True)": lambda x: x.mean(-1, keepdim=True),
    "x.mean(1, keepdim=True)": lambda x: x.mean(1, keepdim=True),
    "x[:1]": lambda x: x[:1],
    "x[0]": lambda x: x[0],
}
TYPES: Dict[str, Callable[[Any], Any]] = {
    "x.double()": lambda x: x.double(),
    "x.float()": lambda x: x.float(),
    "(x * 0 + 2).int()": lambda x: (x * 0 + 2).int(),  # the same whatever was rounded before
}


class Scaled(nn.Module):
    """A parametrization that is not PyTorch's."""

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight * 0.5


def _double(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
    return output * 2


def _half(module: nn.Module, inputs: Any) -> Any:
    return tuple(value * 0.5 for value in inputs)


def _weight_norm(module: nn.Module) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.weight_norm(module)


CHANGES: Dict[str, Callable[[nn.Module], Any]] = {
    "forward hook": lambda m: m.register_forward_hook(_double),
    "forward pre-hook": lambda m: m.register_forward_pre_hook(_half),
    "weight_norm, old": _weight_norm,
    "spectral_norm, old": lambda m: nn.utils.spectral_norm(m),
    "weight_norm": lambda m: parametrizations.weight_norm(m),
    "spectral_norm": lambda m: parametrizations.spectral_norm(m),
    "parametrization": lambda m: nn.utils.parametrize.register_parametrization(m, "weight", Scaled()),
    "pruning": lambda m: prune.l1_unstructured(m, "weight", amount=0.3),
}


class Block(nn.Module):
    """A module of several, which may have hooks of its own."""

    def __init__(self, conv: nn.Module, norm: nn.Module, act: nn.Module, skips: bool) -> None:
        super().__init__()
        self.conv, self.norm, self.act, self.skips = conv, norm, act, skips

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.conv(input))
        if self.skips:
            y += input
        return self.act(y)


class Model(nn.Module):
    """A program: each step is (text, function of the module and the list of tensors -> new tensor)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        self.register_buffer("table", torch.zeros(1))
        self.steps: List[Tuple[str, Callable[["Model", List[torch.Tensor]], torch.Tensor]]] = []
        self.notes: List[str] = []

    def forward(self, x: torch.Tensor) -> Any:
        values = [x]
        for _, step in self.steps:
            values.append(step(self, values))
        return tuple(values[1:][-3:]) + (x,)

    def text(self) -> str:
        lines = [f"t{i} = {text}" for i, (text, _) in enumerate(self.steps, 1)]
        layers = [f"layers[{i}] = {layer}" for i, layer in enumerate(self.layers)]
        return "\n".join([*layers, *self.notes, *lines])


class _Builder:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.spatial = self.random.choice((1, 2, 2, 2, 2, 3))
        self.model = Model()
        self.model.table = torch.randn(1, CHANNELS, *SIZES[self.spatial])
        self.full = [0]  # tensors of full sizes and the model's type, which layers take

    def step(self, text: str, function: Any, full: bool = True) -> int:
        self.model.steps.append((text, function))
        index = len(self.model.steps)
        if full:
            self.full.append(index)
        return index

    def some(self) -> int:
        """A tensor, mostly one of the newest."""
        return self.random.choice(self.full[-3:] if self.random.random() < 0.8 else self.full)

    def layer(self, module: nn.Module) -> int:
        layers = self.model.layers
        if self.random.random() < 0.06 and isinstance(module, tuple(CONV.values())):
            name = self.random.choice(list(CHANGES))
            CHANGES[name](module)
            self.model.notes.append(f"layers[{len(layers)}]: {name}")
        layers.append(module)
        return len(layers) - 1

    def call(self, index: int, of: int) -> int:
        if self.random.random() < 0.1:
            return self.step(f"layers[{index}](input=t{of})", lambda m, v: m.layers[index](input=v[of]))
        return self.step(f"layers[{index}](t{of})", lambda m, v: m.layers[index](v[of]))

    def convolution(self) -> int:
        convs = [(i, layer) for i, layer in enumerate(self.model.layers) if isinstance(layer, tuple(CONV.values()))]
        calls = [i for i, layer in convs if layer.in_channels == CHANNELS]
        if calls and self.random.random() < 0.1:  # a shared module
            return self.call(self.random.choice(calls), self.some())
        kinds, shapes = (CONV_TRANSPOSE, TRANSPOSED) if self.random.random() < 0.2 else (CONV, SHAPES)
        module = kinds[self.spatial](CHANNELS, CHANNELS, **self.random.choice(shapes[self.spatial]))
        for i in calls:  # tied weights
            other = self.model.layers[i]
            tied = isinstance(other._parameters.get("weight"), nn.Parameter) and other.weight.shape == module.weight.shape
            if tied and self.random.random() < 0.15:
                module.weight = other.weight
                self.model.notes.append(f"layers[{len(self.model.layers)}].weight is that of layers[{i}]")
                break
        if self.random.random() < 0.12:
            return self.in_block(module)
        index = self.layer(module)
        if self.random.random() < 0.05 and isinstance(module._parameters.get("weight"), nn.Parameter):
            self.step(f"layers[{index}].weight.mean()", lambda m, v: m.layers[index].weight.mean(), full=False)
        return self.call(index, self.some())

    def in_block(self, conv: nn.Module) -> int:
        """A block's call; at times also one of its convolution alone, and a hook of the block."""
        act = self.random.choice(ACTIVATIONS)()
        block = Block(conv, self.new_norm(), act, self.random.random() < 0.5)
        index = self.layer(block)
        if self.random.random() < 0.4:
            name = self.random.choice(("forward hook", "forward pre-hook"))
            CHANGES[name](block)
            self.model.notes.append(f"layers[{index}]: {name}")
        if self.random.random() < 0.3:
            of = self.some()
            self.step(f"layers[{index}].conv(t{of})", lambda m, v: m.layers[index].conv(v[of]))
        return self.call(index, self.some())

    def new_norm(self) -> nn.Module:
        module = NORM[self.spatial](CHANNELS, affine=self.random.random() < 0.8)
        for tensor in (module.running_mean, module.weight, module.bias):
            if tensor is not None:
                tensor.data.uniform_(-1, 1)
        module.running_var.uniform_(0.5, 2)
        return module

    def norm(self, of: int) -> int:
        return self.call(self.layer(self.new_norm()), of)

    def activation(self, of: int) -> int:
        if self.random.random() < 0.5:
            return self.call(self.layer(self.random.choice(ACTIVATIONS)()), of)
        text = self.random.choice(list(FUNCTIONS))
        return self.step(f"{text}, x = t{of}", lambda m, v: FUNCTIONS[text](v[of]))

    def operand(self) -> Tuple[str, Callable[[Any, Any], Any], bool]:
        """What is added, and whether it is of full sizes and the model's type."""
        of, chance = self.some(), self.random.random()
        for kinds, limit in ((VIEWS, 0.12), (BROADCASTS, 0.24), (TYPES, 0.3)):
            if chance < limit:
                text = self.random.choice(list(kinds))
                return f"({text}, x = t{of})", lambda m, v: kinds[text](v[of]), kinds is VIEWS
        if chance < 0.34:
            return "table", lambda m, v: m.table, False
        if chance < 0.37:
            return "2", lambda m, v: 2, False
        return f"t{of}", lambda m, v: v[of], True

    def addition(self, of: int) -> int:
        what, other, full = self.operand()
        in_place = full and self.random.random() < 0.4
        names = [name for name in ADDITIONS if name.endswith(("= b", "add_(b)")) == in_place]
        if what == "2":
            names = ["a + b"]
        text = self.random.choice(names)
        first = lambda m, v: v[of]
        one, two = (other, first) if full and self.random.random() < 0.4 else (first, other)
        swapped = ", swapped" if one is other else ""
        index = self.step(
            f"{text}, a = t{of}, b = {what}{swapped}", lambda m, v: ADDITIONS[text](one(m, v), two(m, v)), full=False
        )
        if full:
            self.full.append(index)
            return index
        # Back to the type of the model; the sizes are full.
        return self.step(f"t{index}.to(x.dtype)", lambda m, v: v[index].to(v[0].dtype))

    def concatenation(self) -> int:
        """Of DenseNet: a norm of several tensors' channels, and a convolution that makes a usual number of them."""
        parts = [self.some() for _ in range(self.random.choice((1, 2, 2, 3)))]
        channels = CHANNELS * len(parts)
        names = ", ".join(f"t{part}" for part in parts)
        whole = self.step(f"torch.cat([{names}], 1)", lambda m, v: torch.cat([v[i] for i in parts], 1), full=False)
        if self.random.random() < 0.8:
            whole = self.layer_of(NORM[self.spatial](channels), whole)
        if self.random.random() < 0.7:
            whole = self.layer_of(self.random.choice((nn.ReLU(inplace=True), nn.SiLU(), nn.ReLU())), whole)
        return self.call(self.layer(CONV[self.spatial](channels, CHANNELS, 1)), whole)

    def layer_of(self, module: nn.Module, of: int) -> int:
        """A layer's call whose result has another number of channels."""
        index = self.layer(module)
        return self.step(f"layers[{index}](t{of})", lambda m, v: m.layers[index](v[of]), full=False)

    def block(self) -> None:
        if self.random.random() < 0.2:
            self.concatenation()
        last = self.convolution()
        if self.random.random() < 0.5:
            last = self.norm(last)
        if self.random.random() < 0.3:  # something in a neighbouring branch
            self.random.choice((self.convolution, lambda: self.activation(self.some())))()
        if self.random.random() < 0.5:
            last = self.addition(last)
        if self.random.random() < 0.7:
            last = self.activation(last)
        if self.random.random() < 0.1:
            self.addition(last)


def generate(seed: int) -> Tuple[Model, torch.Tensor]:
    """A model in evaluation mode, and an argument for it. The same seed gives the same."""
    torch.manual_seed(seed)
    builder = _Builder(seed)
    for _ in range(builder.random.randint(1, 4)):
        builder.block()
    x = torch.randn(2, CHANNELS, *SIZES[builder.spatial])
    if builder.spatial == 2 and builder.random.random() < 0.2:
        x = x.to(memory_format=torch.channels_last)
    model = builder.model.eval()
    if builder.random.random() < 0.05:
        model.register_forward_hook(lambda m, i, o: tuple(value * 2 for value in o))
        model.notes.append("model: forward hook")
    return model, x
