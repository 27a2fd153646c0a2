"""What activations and batch normalization look like in a graph of aten operators, and where a graph has them.

Inductor decomposes them, each release of PyTorch in its own way. So no pattern is written down: it is the graph that
this PyTorch's own decompositions make of the function. Conversions between floating types, and products with 1, are
passed over in the pattern and in the graph, because inductor removes some of them.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import fx

from .. import _activations
from ._nodes import value_of

aten, prims = torch.ops.aten, torch.ops.prims
Tensor = torch.Tensor
_COMMUTATIVE = (aten.add.Tensor, aten.mul.Tensor)
_NUMBER = 0.34375  # in a pattern: any number. No decomposition has it


class Pattern(NamedTuple):
    root: fx.Node
    operand: fx.Node  # the placeholder of what the function is of
    others: Tuple[fx.Node, ...]  # those of its other arguments


class Match(NamedTuple):
    root: fx.Node
    nodes: List[fx.Node]  # those that depend on the operand, to the root
    others: Tuple[fx.Node, ...]  # what is in the place of the pattern's others
    number: Optional[float]


def is_conversion(node: Any) -> bool:
    """Whether the node converts one floating type to another."""
    if not isinstance(node, fx.Node) or node.target is not prims.convert_element_type.default:
        return False
    value = value_of(node.args[0])  # type: ignore[arg-type]
    return value is not None and value.is_floating_point() and node.args[1].is_floating_point  # type: ignore[union-attr]


def _changes_nothing(node: Any) -> bool:
    """Whether the node is a conversion, or a product or quotient with 1."""
    scales = isinstance(node, fx.Node) and node.target in (aten.mul.Tensor, aten.div.Tensor)
    return (scales and node.args[1] in (1, 1.0)) or is_conversion(node)


def _traced(function: Callable[..., Any], operands: int, sizes: Tuple[int, ...], dtype: torch.dtype, device: str,
            parameters: torch.dtype) -> Pattern:
    from torch._dispatch.python import enable_python_dispatcher
    from torch._inductor.decomposition import select_decomp_table
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    with FakeTensorMode(), enable_python_dispatcher(), torch.no_grad():
        arguments = [torch.empty(sizes, dtype=dtype, device=device)]
        arguments += [torch.empty(sizes[1], dtype=parameters, device=device) for _ in range(operands - 1)]
        graph = make_fx(function, select_decomp_table())(*arguments).graph
    graph.eliminate_dead_code()
    operand, *others = [node for node in graph.nodes if node.op == "placeholder"]
    (root,) = next(node for node in graph.nodes if node.op == "output").all_input_nodes
    while _changes_nothing(root):
        root = root.args[0]
    return Pattern(root, operand, tuple(others))


_SIZES = (2, 3, 4, 5, 6)


@functools.lru_cache(maxsize=None)
def activation_patterns(dtype: torch.dtype, device: str) -> List[Tuple[str, Pattern]]:
    """The patterns of Kiln's activations, with their names. Decompositions may leave out a coefficient of its default,
    so that has a pattern of its own."""
    made = []
    for name, found in _activations.ACTIVATIONS.items():
        for coefficient in (None,) if found.coefficient is None else (found.coefficient, _NUMBER):
            if name != "identity":
                function = lambda x: found.apply(x, coefficient or 0.0)  # noqa: B023  (called at once)
                made.append((name, _traced(function, 1, _SIZES[:4], dtype, device, dtype)))
    return made


@functools.lru_cache(maxsize=None)
def norm_patterns(dtype: torch.dtype, parameters: torch.dtype, dimensions: int, device: str) -> List[Pattern]:
    """Batch normalization by running statistics; its others are mean and variance and, in the first, weight and bias."""
    full = lambda x, mean, var, weight, bias: F.batch_norm(x, mean, var, weight, bias, False, 0.1, _NUMBER)
    plain = lambda x, mean, var: F.batch_norm(x, mean, var, None, None, False, 0.1, _NUMBER)
    return [_traced(f, n, _SIZES[:dimensions], dtype, device, parameters) for f, n in ((full, 5), (plain, 3))]


class _Comparison:
    """Of a pattern with what leads to a node of a graph."""

    def __init__(self, pattern: Pattern, operand: fx.Node) -> None:
        self._pattern = pattern
        self._places: Dict[fx.Node, fx.Node] = {pattern.operand: operand}
        self._number: Optional[float] = None

    def match(self, root: fx.Node) -> Optional[Match]:
        """The match; None if there is none, or if another node reads something inside of it."""
        if not self._is_same(self._pattern.root, root):
            return None
        operand = self._places[self._pattern.operand]
        inside = self._inside(operand, root)
        others = tuple(self._places[node] for node in self._pattern.others)
        alone = all(inside.keys() >= set(node.users) for node in (operand, *inside) if node is not root)
        return Match(root, list(inside), others, self._number) if alone else None

    def _inside(self, operand: fx.Node, root: fx.Node) -> Dict[fx.Node, None]:
        """The nodes between the two, without the operand, each behind those that it reads."""
        bounds = set(self._places.values())
        inside: Dict[fx.Node, None] = {}

        def visit(node: fx.Node) -> bool:
            if node is operand or node in inside:
                return True
            leads = [visit(below) for below in node.all_input_nodes if below in bounds or _changes_nothing(below)]
            if any(leads):
                inside[node] = None
            return any(leads)

        visit(root)
        return inside

    def _is_same(self, wanted: Any, given: Any) -> bool:
        if isinstance(wanted, fx.Node):
            return isinstance(given, fx.Node) and self._is_same_node(wanted, given)
        if isinstance(wanted, (list, tuple)):
            several = isinstance(given, (list, tuple)) and len(wanted) == len(given)
            return several and all(map(self._is_same, wanted, given))
        if isinstance(wanted, float) and wanted == _NUMBER:
            fits = isinstance(given, (int, float)) and self._number in (None, given)
            self._number = float(given) if fits else None
            return fits
        return not isinstance(given, fx.Node) and wanted == given

    def _is_same_node(self, wanted: fx.Node, given: fx.Node) -> bool:
        while _changes_nothing(wanted):
            wanted = wanted.args[0]  # type: ignore[assignment]
        while _changes_nothing(given) and given is not self._places.get(wanted):
            given = given.args[0]  # type: ignore[assignment]
        if wanted in self._places or wanted in self._pattern.others:
            return self._places.setdefault(wanted, given) is given
        if wanted.op != "call_function" or wanted.target is not given.target or wanted.kwargs != given.kwargs:
            return False
        orders = [given.args]
        if wanted.target in _COMMUTATIVE and len(given.args) == 2:
            orders.append(given.args[::-1])
        for arguments in orders:
            before = dict(self._places), self._number
            if self._is_same(wanted.args, arguments):
                self._places[wanted] = given
                return True
            self._places, self._number = before
        return False


def find(pattern: Pattern, operand: fx.Node) -> Optional[Match]:
    """Where the graph has the pattern, as the only reader of ``operand``."""
    depth = len(pattern.root.graph.nodes) + 2  # and what changes nothing
    reached, newest = set(), [operand]
    for _ in range(depth):
        newest = [user for node in newest for user in node.users if user not in reached]
        if not newest or len(reached) > 4 * depth:
            return None
        reached.update(newest)
        for node in newest:
            if node.target is pattern.root.target:
                match = _Comparison(pattern, operand).match(node)
                if match is not None:
                    return match
    return None
