"""One ONNX operator, alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import UnsupportedOperatorError
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.measure.workload import Scalar, Score, Work, Workload, WorkloadSpec
from deep500.networks.flops import count_flops
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.networks.random_inputs import index_limit, random_tensor
from deep500.recipe.describe import describe
from deep500.workloads._accuracy import error_score
from deep500.workloads._batches import hash_batches
from deep500.workloads._frameworks import framework_factors, open_executor, reference_executor
from deep500.workloads._operator_network import LOSS, WEIGHTS, OperatorCall, build_network, read_call

__all__ = ["op"]

#: Forward and gradient by two operands, by convention three times the floating-point operations of forward alone.
GRADIENT_FLOPS = 3

Values = Mapping[str, NDArray[Any]]


def op(spec: WorkloadSpec) -> Workload:
    """One ONNX operator on tensors that lie on the device, or with mode=gradient forward and gradient.

    The text is ``op:NAME,INPUT=SHAPE...[,ATTRIBUTE=value]...[@FRAMEWORK[:DEVICE]]``, such as
    ``op:Conv,X=1x3x32x32,W=8x3x3x3,pads=[1,1,1,1]@pytorch``; operator, inputs and attributes have the names that ONNX
    gives them. Shapes are ``1x3x32x32`` or ``scalar``, with another dtype ``4:int64``; of an input that can be given
    several times ``inputs=[2x3,2x3]``. Axes and shapes, which ONNX takes as int32 or int64 only, are given by value
    (``axes=[0,1]``), and so is an input in numbers with a point (``max=6.0``).

    Options, unless the operator has an input or attribute of that name: ``dtype`` (``float32``) of the inputs that name
    none, ``seed`` (0) of the values, ``mode`` (``forward``, ``gradient``; of an operator with an attribute ``mode``,
    these two mean the workload's, and the attribute has its default then).

    A run executes a network of this one node on tensors that are the framework's own, so that nothing is converted, and
    nothing can be computed before. With ``mode=gradient`` the floating inputs are parameters; the gradient by the
    output is a random tensor, for which the output is multiplied with it and summed. Values are from the standard
    normal distribution, or where the operator is not finite on these, uniform in [0.5, 1.5).

    The score is the L2 error of the results (of the gradients too), relative to those of the NumPy reference.

    Raises:
        MeasurementError: There is no such operator, or it takes no such inputs or attributes.
    """
    return _Operator(spec, *read_call(spec))


class _Operator(Workload):
    """Runs of one operator; see :func:`op`."""

    def __init__(self, spec: WorkloadSpec, call: OperatorCall, seed: int) -> None:
        self._call = call
        self._values, self._expected = _suitable_values(call, seed)
        self._network, fed = _assembled(call, self._values)
        self._executor = open_executor(spec, self._network)
        inputs = self._network.inputs
        self._inputs = {name: self._executor.to_native(value, inputs[name]) for name, value in fed.items()}
        self._step = _step(self._executor, call)

    def run(self) -> None:
        """Execute the operator."""
        self._step(self._inputs)

    def synchronize(self) -> None:
        """Wait until the device has finished."""
        self._executor.synchronize()

    @functools.cached_property
    def identity(self) -> Mapping[str, Any]:
        """Operator, version, attributes, and its inputs."""
        call = self._call
        return {
            "problem": "operator",
            "operator": call.op_type,
            "version": call.version,
            "attributes": describe(call.attributes),
            "inputs": {name: str(descriptor) for name, descriptor in call.tensors.items()},
            "constants": {name: describe(value.tolist()) for name, value in call.constants.items()},
            "mode": "gradient" if call.is_gradient else "forward",
        }

    @property
    def factors(self) -> Mapping[str, Scalar]:
        """Framework, version, device and settings."""
        executor = self._executor
        return {
            **framework_factors(executor.framework, executor.device),
            "io": "the framework's tensors, on the device",
        }

    @functools.cached_property
    def data_hash(self) -> str:
        """SHA-256 over the values of the inputs."""
        return hash_batches([self._values])

    @functools.cached_property
    def work(self) -> Work:
        """Floating-point operations and the bytes of all inputs and outputs; of a gradient three times and twice."""
        call = self._call
        counted = count_flops(self._network)
        (flops,) = [count for node, count in zip(counted.nodes, counted.flops) if node.name == call.op_type]
        floating = sum(value.nbytes for name, value in self._values.items() if name in self._network.parameters)
        moved = sum(value.nbytes for value in (*self._values.values(), *call.constants.values())) + floating
        if not call.is_gradient:  # the gradient by the output is among the values
            moved += sum(kind.size_bytes or 0 for kind in call.outputs)
        if call.is_gradient and flops is not None:
            flops *= GRADIENT_FLOPS
        return Work(None, "item", flops, moved, next(iter(call.tensors.values())).dtype)

    def scores(self) -> list[Score]:
        """Return how far the results are from the reference's; nothing where the reference lacks the operator."""
        if self._expected is None:
            return []
        results = _results(self._executor, self._call, self._inputs)
        return [error_score("L2 relative error to the reference", results, self._expected)]


def _suitable_values(call: OperatorCall, seed: int) -> tuple[Values, list[NDArray[Any]] | None]:
    """Draw values on which the operator is finite, if there are; return what the reference makes of them.

    The results are ``None`` where the reference does not know the operator.
    """
    values: Values = {}
    results = None
    for positive in (False, True):
        values = _draw(call, seed, positive)
        network, fed = _assembled(call, values)
        try:
            with np.errstate(all="ignore"):  # that they are not finite is what is asked
                results = _results(reference_executor(network), call, fed)
        except UnsupportedOperatorError:
            break
        if all(np.isfinite(result.astype(np.float64)).all() for result in results):
            break
    return values, results


def _draw(call: OperatorCall, seed: int, positive: bool) -> Values:
    kinds = dict(call.tensors)
    if call.is_gradient:
        kinds[WEIGHTS] = TensorDescriptor(call.outputs[0].dtype, (call.outputs[0].element_count or 0, 1))
    first = call.tensors.get(call.inputs[0]) if call.inputs else None
    shape, axis = None if first is None else first.shape, call.attributes.get("axis")
    values = {}
    for name, kind in kinds.items():
        limit = index_limit(call.op_type, call.inputs.index(name), shape, axis) if name in call.inputs else None
        stream = random_stream(seed, "workload", "operator", name)
        values[name] = random_tensor(kind, stream, below=limit, positive=positive)
    return values


def _assembled(call: OperatorCall, values: Values) -> tuple[Network, Values]:
    """Return the network, and what it is fed: all values, but for a gradient the floating ones are its parameters."""
    floating = ("float16", "bfloat16", "float32", "float64")
    stored = [name for name in call.tensors if call.is_gradient and call.tensors[name].dtype in floating]
    network = build_network(call, {name: values[name] for name in stored})
    if call.attributes.get("training_mode"):
        network.train()
    return network, {name: value for name, value in values.items() if name not in stored}


def _step(executor: GraphExecutor, call: OperatorCall) -> Any:
    return functools.partial(executor.inference_and_backprop, loss=LOSS) if call.is_gradient else executor.inference


def _results(executor: GraphExecutor, call: OperatorCall, fed: Mapping[str, Any]) -> list[NDArray[Any]]:
    """Return the outputs of one run, and the gradients where they are asked for."""
    outputs = _step(executor, call)(fed)
    results = [np.array(executor.to_numpy(outputs[name])) for name in call.output_names]
    gradients = [name for _, name in executor.network.gradient(LOSS)] if call.is_gradient else []
    return results + executor.network.fetch_tensors(gradients)
