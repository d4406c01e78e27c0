"""Which micro-batch sizes bring a network under a bound of memory in the least time: an integer program.

Source: Y. Oyama, T. Ben-Nun, T. Hoefler, S. Matsuoka, "Accelerating deep learning frameworks with micro-batches",
CLUSTER 2018 (section III: sizes for every layer, mixed within a batch, by an integer program).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.flop_rules._sizes import input_shape, output_shape
from deep500.networks.flops import FlopCount, count_flops
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode

__all__ = ["CALL_FLOPS", "Layer", "candidate_sizes", "choose_sizes", "step_bytes", "step_size", "workspace_bytes"]

#: What starting one operator costs beside its work, in floating-point operations, where times are modelled.
CALL_FLOPS = 10**6

#: Operators by what their gradient needs of them; of any other, inputs and outputs are taken to be kept.
_KEEPS_OUTPUTS = frozenset(("Relu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Exp", "Sqrt", "Reciprocal", "Elu"))
_KEEPS_INPUTS = frozenset(("Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "MaxPool", "LRN", "Mul"))
_KEEPS_NOTHING = frozenset(
    (
        *("Add", "Sub", "Sum", "Neg", "Identity", "Flatten", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Concat"),
        *("Split", "Slice", "AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum", "Cast"),
    )
)
_VIEWS = frozenset(("Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze"))


@dataclass(frozen=True)
class Layer:
    """A layer whose batch may be divided.

    Attributes:
        name: The node's name.
        fixed_bytes: What is in use while it runs, whatever its parts are.
        bytes: What each size of part needs beside that, by the number of samples.
        times: What a part of each size costs, in any unit that is the same for all layers.
    """

    name: str
    fixed_bytes: int
    bytes: Mapping[int, int]
    times: Mapping[int, float]


def candidate_sizes(batch_size: int) -> list[int]:
    """Return the sizes that are tried: the divisors of the batch size, and the powers of two up to it.

    Example:
        >>> candidate_sizes(12)
        [1, 2, 3, 4, 6, 8, 12]
    """
    check_count("batch_size", batch_size, least=1)
    divisors = {d for d in range(1, math.isqrt(batch_size) + 1) if batch_size % d == 0}
    powers = {1 << i for i in range(batch_size.bit_length()) if 1 << i <= batch_size}
    return sorted(divisors | {batch_size // d for d in divisors} | powers)


def choose_sizes(layers: Sequence[Layer], batch_size: int, memory_bound: int) -> list[list[int]]:
    r"""Return the sizes of every layer's parts, the largest first, that take the least time within the memory.

    With :math:`n_{l,s}` parts of size :math:`s` in layer :math:`l`, of time :math:`t` and memory :math:`b`:

    .. math:: \min \sum_{l,s} t_{l,s} n_{l,s} \quad\text{with}\quad \sum_s s\, n_{l,s} = N, \quad
              n_{l,s} \le \tfrac N s u_{l,s}, \quad f_l + b_{l,s} u_{l,s} \le M, \quad u_{l,s} \in \{0, 1\}

    Args:
        layers: The layers.
        batch_size: N.
        memory_bound: M, in bytes.

    Raises:
        InvalidInputError: No sizes fit; the message says how much memory the smallest take.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import lil_matrix

    check_count("batch_size", batch_size, least=1)
    check_count("memory_bound", memory_bound, least=1)
    places = [(i, size) for i, layer in enumerate(layers) for size in layer.bytes]
    count = len(places)
    if not count:
        return []
    _check_feasible(layers, memory_bound)
    rows = lil_matrix((len(layers) + 2 * count, 2 * count))
    low, high = np.full(rows.shape[0], -np.inf), np.zeros(rows.shape[0])
    low[: len(layers)] = high[: len(layers)] = batch_size
    largest = float(max(memory_bound, 1))
    for j, (i, size) in enumerate(places):
        rows[i, j] = size
        rows[len(layers) + 2 * j, j], rows[len(layers) + 2 * j, count + j] = 1, -(batch_size // size)
        # In units of the bound, so that the solver's tolerances mean something.
        rows[len(layers) + 2 * j + 1, count + j] = layers[i].bytes[size] / largest
        high[len(layers) + 2 * j + 1] = (memory_bound - layers[i].fixed_bytes) / largest
    times = np.array([layers[i].times[size] for i, size in places])
    objective = np.concatenate([times / (times.max() or 1.0), np.zeros(count)])
    limits = np.array([batch_size // size for _, size in places] + [1] * count)
    found = milp(
        objective,
        constraints=LinearConstraint(rows.tocsr(), low, high),
        integrality=np.ones(2 * count),
        bounds=Bounds(0, limits),
        options={"mip_rel_gap": 1e-6},
    )
    if found.x is None:
        raise InvalidInputError(f"No division of a batch of {batch_size} fits into {memory_bound:,} bytes.")
    parts: list[list[int]] = [[] for _ in layers]
    for (i, size), number in zip(places, found.x):
        parts[i] += [size] * round(number)
    return [sorted(sizes, reverse=True) for sizes in parts]


def _check_feasible(layers: Sequence[Layer], memory_bound: int) -> None:
    needs = [(layer.fixed_bytes + min(layer.bytes.values()), layer.name) for layer in layers]
    least, name = max(needs)
    if least > memory_bound:
        raise InvalidInputError(
            f"memory_bound was given as {memory_bound:,} bytes; layer {name!r} needs {least:,} with the smallest "
            f"parts.{_advice(layers)}"
        )


def _advice(layers: Sequence[Layer]) -> str:
    """Return what else may help: several layers are divided each for itself, one stands for the whole network."""
    return " A MicroBatchedExecutor, which runs the whole network in parts, needs less." if len(layers) > 1 else ""


def workspace_bytes(node: OperatorNode) -> int:
    """Return what a convolution needs beside its tensors when it is done as a matrix product; 0 of other operators.

    Source: S. Chetlur et al., "cuDNN: efficient primitives for deep learning", 2014, section 3 (im2col).
    """
    if node.op_type not in ("Conv", "ConvTranspose") or node.domain:
        return 0
    kernel = input_shape(node, 1)
    images = output_shape(node) if node.op_type == "Conv" else input_shape(node, 0)
    kind = node.input_types[0]
    assert kind is not None
    # ConvTranspose is a convolution backwards: its columns are of its output's channels, at its input's pixels.
    return images[0] * math.prod(images[2:]) * math.prod(kernel[1:]) * kind.numpy_dtype.itemsize


def step_bytes(network: Network, size: int, *, parts: int = 1, workspaces: bool = True) -> int:
    """Return a model of the memory of a training step, in bytes: tensors, gradients, and what the gradients need.

    What is kept between both directions is told by operator: convolutions and matrix products keep their inputs,
    activations their outputs, sums nothing. Beside it, the gradient that is being computed and a workspace are in use.
    The network's inputs are not counted: whoever feeds them holds the whole batch.

    Args:
        network: A network with a symbolic batch size.
        size: Number of samples in a part.
        parts: Number of parts; from 2 on, gradients are held twice, the sum and those of a part.
        workspaces: Whether convolutions are done as matrix products, with :func:`workspace_bytes`; most libraries for
            processors do not.
    """
    return _step_bytes(network, count_flops(network, size), parts, workspaces)


def _step_bytes(network: Network, count: FlopCount, parts: int, workspaces: bool) -> int:
    aliases: dict[str, str] = {}
    kept: dict[str, int] = {}
    passing = 0
    given = {*network.parameters, *network.states, *network.constants, *network.inputs}
    for node in count.nodes:
        sizes = {n: (t.size_bytes or 0) if t else 0 for n, t in zip(node.inputs, node.input_types)}
        results = {n: (t.size_bytes or 0) if t else 0 for n, t in zip(node.outputs, node.output_types)}
        if node.op_type in _VIEWS and node.inputs[0]:
            aliases[node.outputs[0]] = aliases.get(node.inputs[0], node.inputs[0])
        known = node.op_type in _KEEPS_OUTPUTS | _KEEPS_INPUTS | _KEEPS_NOTHING and not node.domain
        held = {}
        if not known or node.op_type in _KEEPS_INPUTS:
            held.update(sizes)
        if not known or node.op_type in _KEEPS_OUTPUTS:
            held.update(results)
        kept.update({aliases.get(n, n): b for n, b in held.items() if n and n not in given})
        own = sum(b for n, b in sizes.items() if n not in given) + sum(results.values())
        passing = max(passing, own + (workspace_bytes(node) if workspaces else 0))
    weights = sum(d.size_bytes or 0 for d in (*network.parameters.values(), *network.states.values()))
    return weights + network.parameter_size_bytes * (1 if parts == 1 else 2) + sum(kept.values()) + passing


def step_size(
    network: Network,
    batch_size: int,
    memory_bound: int,
    *,
    times: Mapping[int, float] | None = None,
    workspaces: bool = True,
) -> int:
    """Return the size of the parts with which a training step takes the least time within the memory.

    Args:
        network: A network with a symbolic batch size and a loss.
        batch_size: Number of samples of a whole step.
        memory_bound: Most bytes of tensors, gradients and what is kept for them, as :func:`step_bytes` counts them.
        times: Measured seconds of a step with each size of part; by default they follow from the operations.
        workspaces: As :func:`step_bytes`.

    Raises:
        InvalidInputError: No size fits.
    """
    sizes = [s for s in candidate_sizes(batch_size) if times is None or s in times]
    if not sizes:
        raise InvalidInputError(f"times has none of the sizes {', '.join(map(str, candidate_sizes(batch_size)))}.")
    needed, costs = {}, {}
    for size in sizes:
        count = count_flops(network, size)
        number = -(-batch_size // size)
        needed[size] = _step_bytes(network, count, number, workspaces)
        costs[size] = (3.0 * (count.total + CALL_FLOPS * len(count.nodes))) if times is None else times[size]
    # A step is made of parts of one size, so a batch that it does not divide has a last part that is cheaper.
    (parts,) = choose_sizes([Layer(network.name, 0, needed, costs)], batch_size, memory_bound)
    return parts[0]
