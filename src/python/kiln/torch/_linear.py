"""Products of matrices and linear layers as functions, with bias, residual and activation in the same kernel."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch

from . import _activations, _matmul, _operators, _transforms
from ._functions import _lower

Tensor = torch.Tensor


@torch.compiler.assume_constant_result  # torch.compile guards on it
def _allow_tf32() -> bool:
    try:
        return bool(torch._C._get_fp32_precision_getter("cuda", "matmul") == "tf32")
    except (AttributeError, RuntimeError):
        return bool(torch._C._get_cublas_allow_tf32())


def matmul(input: Tensor, other: Tensor, bias: Optional[Tensor] = None, *, residual: Optional[Tensor] = None,
           activation: str = "identity", coefficient: Optional[float] = None) -> Tensor:
    """The product of two matrices, or of two batches of matrices, with bias, residual and activation in the kernel.

    ``activation(input @ other + bias + residual)`` in eager mode and under torch.compile, with gradients of any order.
    Kiln computes it whether ``kiln.torch.enable()`` was called or not; on the CPU its slow host device does, for trying
    things out. If Kiln does not support the arguments, PyTorch's functions compute the result, and
    ``kiln.torch.report()`` has the reason. Under torch.func and forward-mode derivatives it is composed of PyTorch's.
    f32 is multiplied in TF32 where ``torch.backends.cuda.matmul.allow_tf32`` says so.

    input: (M, K), or (B, M, K). other: (K, N), or (B, K, N); any strides, so transposes are views. bias: (N,).
    residual: a tensor with the sizes and the type of the result. activation: one of {activations}.
    coefficient: the bound of "clipped_relu" (6), the slope of "leaky_relu" (0.01), the scale of "elu" (1).
    Raises ValueError or RuntimeError if arguments do not fit together.
    """
    found = _activations.find(activation)
    value = found.coefficient if coefficient is None else coefficient
    if found.coefficient is None and coefficient is not None:
        raise ValueError(f"coefficient is {coefficient}; the activation {activation!r} takes none")
    if input.dim() not in (2, 3) or other.dim() != input.dim():
        raise ValueError(
            f"input has {input.dim()} dimensions and other {other.dim()}; expected 2, or 3 with a batch"
        )
    _operators.register()
    input, other, bias, residual = _lower((input, other, bias, residual))  # type: ignore[assignment]
    if _transforms.active() or input.is_complex() or other.is_complex():
        return _matmul.composed(input, other, bias, residual, found.number, value or 0.0)
    return torch.ops.kiln.matmul_bias_activation(
        input, other, bias, residual, found.number, value or 0.0, _allow_tf32()
    )


def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, *, residual: Optional[Tensor] = None,
           activation: str = "identity", coefficient: Optional[float] = None) -> Tensor:
    """A linear layer with residual and activation in the same kernel.

    ``activation(torch.nn.functional.linear(input, weight, bias) + residual)``, as ``kiln.torch.matmul`` computes it;
    its gradients are products as well.

    input: (..., K). weight: (N, K), or (K,) for a result without the last dimension. bias: (N,). residual: a tensor with
    the sizes and the type of the result. activation, coefficient: as in ``kiln.torch.matmul``.
    Raises ValueError or RuntimeError if arguments do not fit together.
    """
    if weight.dim() == 1:
        one = lambda t: None if t is None else t.unsqueeze(-1)
        options: Dict[str, Any] = dict(residual=one(residual), activation=activation, coefficient=coefficient)
        return linear(input, weight.unsqueeze(0), one(bias), **options).squeeze(-1)
    if input.dim() == 0 or weight.dim() != 2 or input.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"input has sizes {tuple(input.shape)} and weight {tuple(weight.shape)}; expected (..., K) and (N, K)"
        )
    sizes = (*input.shape[:-1], weight.shape[0])
    if residual is not None:
        if residual.shape != sizes:
            raise ValueError(f"residual has sizes {tuple(residual.shape)}; expected those of the result, {sizes}")
        residual = residual.reshape(-1, weight.shape[0])
    rows = input.reshape(-1, weight.shape[1])
    y = matmul(rows, weight.t(), bias, residual=residual, activation=activation, coefficient=coefficient)
    return y.view(sizes)


matmul.__doc__ = (matmul.__doc__ or "").format(activations=", ".join(f'"{name}"' for name in _activations.ACTIVATIONS))
