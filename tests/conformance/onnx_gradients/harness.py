"""Checking the gradients that a framework's executor computes for an operator.

python -m tests.conformance.onnx_gradients.harness pytorch
python -m tests.conformance.onnx_gradients.harness tensorflow --operator Gather --operator Pad --examples 20

The network of a case is the operator and a loss, the sum of its outputs with random weights. The loss is
differentiated by the framework's ``inference_and_backprop`` in float64, and by differences of the reference's forward
(:func:`deep500.operators.validation.gradient.test_op_gradient`, whose limits follow from step, size and rounding).
"""

from __future__ import annotations

import argparse
import collections
import functools
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from hypothesis import HealthCheck, Phase, given, settings

from deep500.core.random import random_stream
from deep500.frameworks import FRAMEWORKS
from deep500.measure.tolerance import largest_violation, tolerance
from deep500.networks import Network
from deep500.networks.normalise.model import IR_VERSION
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole
from deep500.operators.operator import Operator, OptionalArray
from deep500.operators.validation import test_op_gradient
from tests.conformance.onnx_gradients._gradient_graph import find_adapter
from tests.conformance.onnx_gradients.cases import Array, GradientCase, load_strategies

#: Fewest products that a sum is taken to have: elementary functions are not rounded correctly either.
_LEAST_LENGTH = 64


def check_gradients(framework: str, case: GradientCase) -> None:
    """Compare outputs and gradients of a framework with the reference's outputs and their differences.

    Raises:
        AssertionError: Outputs differ.
        OperatorError: Gradients do.
        Deep500Error: The framework cannot run the case.
    """
    module = find_adapter(framework)
    outputs = _reference_outputs(case)
    weights = {i: _weights(i, y) for i, y in outputs.items()}
    network = build_network(case, weights)
    executor = module.from_model(network)
    executor.network.as_declared()
    names = [f"x{i}" for i in case.differentiable]
    results = executor.inference_and_backprop(_fed(case), "loss")
    # Operators without a float64 form are differentiated in float32, and their outputs converted.
    dtype = min((str(case.inputs[i].dtype) for i in case.differentiable), default="float64")
    length = max(_LEAST_LENGTH, *(x.size for x in case.inputs if x is not None))
    for i, y in outputs.items():
        value = np.asarray(executor.to_numpy(results[f"y{i}"]))
        assert (value.shape, value.dtype) == (y.shape, y.dtype), (
            f"output {i} is {value.dtype}{list(value.shape)} in {framework}, and {y.dtype}{list(y.shape)} in the "
            f"reference"
        )
        worst = largest_violation(value, y, _allowed(y, length, dtype))
        assert worst is None, f"output {i} in {framework}: {worst}"
    gradients = executor.network.fetch_tensors([f"{name}.grad" for name in names])
    _check(case, network, gradients)


def build_network(case: GradientCase, weights: dict[int, Array] | None = None) -> Network:
    """Return the network of a case: the operator, and the loss where weights of the outputs are given."""
    nodes, outputs = list(case.nodes) or [_node(case)], list(case.differentiable_outputs)
    tensors = {f"x{i}": x for i, x in enumerate(case.inputs) if x is not None}
    roles = {f"x{i}": TensorRole.PARAMETER for i in case.differentiable}
    roles |= {f"x{i}": TensorRole.CONSTANT for i in case.stored or ()}
    if weights is None:
        typed = _unranked(outputs, nodes, tensors, roles)
    else:
        tensors |= {f"w{i}": weight for i, weight in weights.items()}
        roles |= {f"w{i}": TensorRole.CONSTANT for i in weights}
        nodes += _loss(outputs)
        typed = [oh.make_tensor_value_info(f"y{i}", onnx.TensorProto.DOUBLE, [None] * weights[i].ndim) for i in outputs]
        typed.append(oh.make_tensor_value_info("loss", onnx.TensorProto.DOUBLE, ()))
    fed = [_value_info(name, x) for name, x in tensors.items() if name not in roles]
    stored = [onnx.numpy_helper.from_array(x, name) for name, x in tensors.items() if name in roles]
    infos = [_value_info(name, tensors[name]) for name in roles]
    for info, role in zip(infos, roles.values(), strict=True):
        info.metadata_props.add(key=ROLE_KEY, value=role.value)
    # Shape inference does not read what outputs declare.
    ranks = {f"p{i}": [None] * weight.ndim for i, weight in (weights or {}).items()}
    infos += [oh.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, sizes) for name, sizes in ranks.items()]
    graph = oh.make_graph(nodes, "case", fed, typed, stored, value_info=infos)
    return Network.load(oh.make_model(graph, opset_imports=_imports(case), ir_version=IR_VERSION))


def _node(case: GradientCase) -> onnx.NodeProto:
    attributes = {
        key: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for key, value in case.attributes.items()
    }
    own = [(i, x) for i, x in enumerate(case.inputs) if i not in case.captured]
    names = ["" if x is None else f"x{i}" for i, x in own]
    outputs = [f"y{i}" for i in range(case.outputs)]
    return oh.make_node(case.operator, names, outputs, name="node", domain=case.domain, **attributes)


def _unranked(
    outputs: Sequence[int], nodes: list[onnx.NodeProto], tensors: dict[str, Array], roles: dict[str, TensorRole]
) -> list[onnx.ValueInfoProto]:
    """Add nodes that give outputs of unknown rank in a form whose rank is known, since models have to declare it."""
    tensors["all"], roles["all"] = np.array([-1]), TensorRole.CONSTANT
    typed = []
    for i in outputs:
        nodes.append(oh.make_node("Reshape", [f"y{i}", "all"], [f"flat{i}"], name=f"flat{i}"))
        nodes.append(oh.make_node("Shape", [f"y{i}"], [f"shape{i}"], name=f"shape{i}"))
        typed.append(oh.make_tensor_value_info(f"flat{i}", onnx.TensorProto.DOUBLE, [None]))
        typed.append(oh.make_tensor_value_info(f"shape{i}", onnx.TensorProto.INT64, [None]))
    return typed


def _loss(outputs: Sequence[int]) -> list[onnx.NodeProto]:
    nodes = []
    for i in outputs:
        nodes.append(oh.make_node("Mul", [f"y{i}", f"w{i}"], [f"p{i}"], name=f"product{i}"))
        nodes.append(oh.make_node("ReduceSum", [f"p{i}"], [f"s{i}"], name=f"sum{i}", keepdims=0))
    total = f"s{outputs[0]}"
    for i in outputs[1:]:
        nodes.append(oh.make_node("Add", [total, f"s{i}"], [f"t{i}"], name=f"total{i}"))
        total = f"t{i}"
    return [*nodes, oh.make_node("Identity", [total], ["loss"], name="loss")]


def _imports(case: GradientCase) -> list[onnx.OperatorSetIdProto]:
    newest = onnx.defs.onnx_opset_version()
    if not case.domain:
        return [oh.make_opsetid("", case.version or newest)]
    version = case.version or onnx.defs.get_schema(case.operator, domain=case.domain).since_version
    return [oh.make_opsetid("", newest), oh.make_opsetid(case.domain, version)]


def _value_info(name: str, x: Array) -> onnx.ValueInfoProto:
    # Arrays of objects or texts hold strings.
    code = onnx.TensorProto.STRING if x.dtype.kind in "OUT" else oh.np_dtype_to_tensor_dtype(x.dtype)
    return oh.make_tensor_value_info(name, code, x.shape)


def _fed(case: GradientCase) -> dict[str, Array]:
    kept = {*case.differentiable, *(case.stored or ())}
    return {f"x{i}": x for i, x in enumerate(case.inputs) if x is not None and i not in kept}


def _reference_outputs(case: GradientCase) -> dict[int, Array]:
    executor = FRAMEWORKS.get("reference").from_model(build_network(case))
    executor.network.as_declared()
    results = executor.inference(_fed(case))
    return {i: np.array(results[f"flat{i}"]).reshape(results[f"shape{i}"]) for i in case.differentiable_outputs}


def _weights(index: int, y: Array) -> Array:
    """Return weights of an output: sizes from 0.5 to 1.5 of either sign, so that every element counts."""
    stream = random_stream(index, "conformance", "gradients")
    return np.asarray(stream.uniform(0.5, 1.5, y.shape) * stream.choice([-1.0, 1.0], y.shape))


def _allowed(y: Array, length: int, dtype: str) -> Any:
    """Allow what sums of products of the outputs' size may be off, relative to the largest of them."""
    relative = tolerance(dtype, length).relative
    largest = float(np.max(np.abs(y), initial=1.0, where=np.isfinite(y)))
    return type(tolerance(dtype, length))(relative=relative, absolute=relative * largest)


class _Loss(Operator):
    """The loss of a network in the reference, and the gradients that a framework found for it at one place."""

    def __init__(self, case: GradientCase, network: Network, gradients: Sequence[Array]) -> None:
        self._fed, self._names = _fed(case), [f"x{i}" for i in case.differentiable]
        self._executor = FRAMEWORKS.get("reference").from_model(network)
        self._executor.network.as_declared()
        self._gradients = gradients

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        for name, x in zip(self._names, inputs, strict=True):
            self._executor.network.feed_tensor(name, x)
        return (np.array(self._executor.inference(self._fed)["loss"]),)

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> tuple[OptionalArray, ...]:
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        return tuple(np.asarray(grads[0] * gradient, gradient.dtype) for gradient in self._gradients)


def _check(case: GradientCase, network: Network, gradients: Sequence[Array]) -> None:
    inputs = [np.asarray(case.inputs[i]) for i in case.differentiable]
    for i, (x, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        assert gradient.shape == x.shape, (
            f"the gradient by input {case.differentiable[i]} is of {gradient.shape}, not {x.shape}"
        )
    loss = _Loss(case, network, gradients)
    loss.__class__ = type(case.label, (_Loss,), {})  # what messages call it
    test_op_gradient(loss, inputs)


def examples(operator: str, count: int) -> list[GradientCase]:
    """Return cases of an operator, the same ones each time."""
    found: list[GradientCase] = []

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=load_strategies()[operator])
    def draw(case: GradientCase) -> None:
        found.append(case)

    draw()
    return found


@functools.cache
def drawn(operator: str, count: int) -> tuple[GradientCase, ...]:
    """Return cases of an operator, drawn once for all frameworks; the first, the simplest one, comes last."""
    first, *others = examples(operator, count + 1)
    return (*others, first)[:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework")
    parser.add_argument("--operator", action="append", help="only this operator")
    parser.add_argument("--examples", type=int, default=10, help="cases for each operator")
    arguments = parser.parse_args()
    chosen = arguments.operator or list(load_strategies())
    failed: collections.Counter[str] = collections.Counter()
    watch = time.perf_counter()
    for operator in chosen:
        for case in drawn(operator, arguments.examples):
            try:
                check_gradients(arguments.framework, case)
            except Exception as error:  # noqa: BLE001 - whatever happens to a case is its result
                if not failed[operator]:
                    print(f"{operator}: {type(error).__name__}: {' '.join(str(error).split())[:600]}\n  {case!r:.900}")
                failed[operator] += 1
    print(f"{arguments.framework}: {len(chosen) - len(failed)} of {len(chosen)} operators right over "
          f"{arguments.examples} cases each, {time.perf_counter() - watch:.0f} s")  # fmt: skip
    print("  failing cases: " + ", ".join(f"{name} {count}" for name, count in failed.most_common()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
