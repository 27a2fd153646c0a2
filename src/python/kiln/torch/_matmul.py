"""Products of matrices, as linear layers have them: kiln::matmul_bias_activation, a PyTorch operator with a fake kernel and
gradients of any order, which are products too.

Kiln computes it whether it is enabled or not. If it does not support the arguments, PyTorch's functions compute the
result.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from . import _activations

Tensor = torch.Tensor
SCHEMAS = (
    "matmul_bias_activation(Tensor a, Tensor b, Tensor? bias, Tensor? residual, int activation, float coefficient, "
    "bool tf32) -> Tensor",
)


def composed(a: Tensor, b: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: int,
             coefficient: float, tf32: bool = False) -> Tensor:
    """The product by PyTorch's functions; PyTorch has its own flag in place of ``tf32``."""
    y = a @ b
    if bias is not None:
        y = y + bias
    if residual is not None:
        _activations.check_residual(residual, y, "the product")
        y = y + residual
    return _activations.apply(activation, coefficient, y)


def _fake(a: Tensor, b: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: int, *_: Any) -> Tensor:
    _activations.by_number(activation)
    y = torch.ops.aten.matmul(a, b)
    if residual is not None:
        _activations.check_residual(residual, y, "the product")
    return y.new_empty(y.shape)


def _save(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    a, b, bias, residual, ctx.activation, ctx.coefficient, ctx.tf32 = inputs
    from_result = _activations.by_number(ctx.activation).from_result
    if from_result:
        ctx.save_for_backward(a, b, None, None, None if ctx.activation == _activations.IDENTITY else output)
    else:  # the gradient needs the activation's argument, so it is computed again
        ctx.save_for_backward(a, b, bias, residual, None)


def _gradients(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    a, b, bias, residual, y = ctx.saved_tensors
    activation = _activations.by_number(ctx.activation)

    def product(left: Tensor, right: Tensor, *epilogue: Optional[Tensor]) -> Tensor:
        of = epilogue or (None, None)
        return torch.ops.kiln.matmul_bias_activation(left, right, *of, _activations.IDENTITY, 0.0, ctx.tf32)

    if not activation.from_result:
        y = product(a, b, bias, residual)
    dz = dy if ctx.activation == _activations.IDENTITY else activation.gradient(dy, y, ctx.coefficient)
    wanted = ctx.needs_input_grad
    da = db = dbias = None
    if wanted[0]:
        da = product(dz, b.mT)
    if wanted[1]:
        # As b lies: the weights of a linear layer are transposed, and so is what their gradient is added to.
        by_columns = b.stride(-2) == 1 and b.stride(-1) != 1
        db = product(dz.mT, a).mT if by_columns else product(a.mT, dz)
    if wanted[2]:
        dbias = dz.sum(tuple(range(dz.dim() - 1)))
    return da, db, dbias, dz if wanted[3] else None, None, None, None


def define(library: torch.library.Library) -> None:
    for schema in SCHEMAS:
        library.define(schema)
    name = "kiln::matmul_bias_activation"
    torch.library.register_fake(name, _fake, lib=library)
    torch.library.register_autograd(name, _gradients, setup_context=_save, lib=library)
