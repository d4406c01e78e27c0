"""Gradients that an executor hands out in flat buffers while backward runs: the same as without, in every adapter."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.flat_buffers import Bucket, FlatBuffers, OverlappingExecutor
from deep500.distributed.scheme import Scheme
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.top_k import TopK
from deep500.distributed.schemes.zero_1 import Zero1
from deep500.frameworks import FRAMEWORKS
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.training.optimizer import Optimizer, UpdateRuleOptimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer
from tests.conformance.optimizer_networks import batches
from tests.conformance.scheme_oracles import BASES, check_equal, check_replicas, train
from tests.conformance.test_optimizers import make_executor, parameters_of

#: Adapters that hand out nothing, and why.
WITHOUT = {"onnxruntime": "the gradients are outputs of one run, all there at once"}

ADAPTERS = [name for name in FRAMEWORKS.names() if name not in WITHOUT]

SIZES = [1, 200, 1 << 20]

Handed = list[tuple[tuple[str, ...], np.ndarray]]


def adapter_of(framework: str) -> Any:
    return importlib.import_module(f"deep500.frameworks.{framework}")


@functools.cache
def executor_of(framework: str) -> GraphExecutor:
    return make_executor(framework)


def buffers_of(executor: GraphExecutor) -> FlatBuffers:
    network = executor.network
    return FlatBuffers({name: network.parameters[name] for name in network.get_params()})


def hand_out(
    executor: Any, inputs: Any, gradients: FlatBuffers, buckets: list[Bucket], loss: str = "loss"
) -> tuple[dict[str, Any], Handed]:
    """Return the outputs, and names and values of the buckets as they were handed out."""
    handed: Handed = []

    def take(bucket: Bucket) -> None:
        handed.append((bucket.names, bucket.array.copy()))
        bucket.array[...] = np.nan  # it is not touched from now on

    outputs = executor.gradient_buckets(inputs, loss, gradients, buckets, take)
    assert all(np.isnan(buffer.array).all() for buffer in gradients), "a bucket was written after it was handed out"
    return outputs, handed


def plain(executor: GraphExecutor, inputs: Any, loss: str = "loss") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the outputs and gradients without buckets."""
    outputs = executor.inference_and_backprop(inputs, loss)
    gradients = {name: np.zeros_like(value) for name, value in parameters_of(executor).items()}
    for name, gradient in executor.network.gradient(loss):
        gradients[name] = executor.network.fetch_tensors([gradient])[0]
    return outputs, gradients


def check_handed(executor: GraphExecutor, inputs: Any, size: int, loss: str = "loss") -> None:
    gradients = buffers_of(executor)
    buckets = gradients.buckets(size)
    outputs, handed = hand_out(executor, inputs, gradients, buckets, loss)
    expected_outputs, expected = plain(executor, inputs, loss)
    assert [names for names, _ in handed] == [bucket.names for bucket in buckets]
    for names, values in handed:
        flat = np.concatenate([expected[name].reshape(-1) for name in names])
        np.testing.assert_allclose(values, flat, rtol=1e-12 if flat.dtype == np.float64 else 1e-5, atol=1e-12)
    assert outputs.keys() == expected_outputs.keys()
    for name, value in expected_outputs.items():
        np.testing.assert_allclose(executor.to_numpy(outputs[name]), executor.to_numpy(value), rtol=1e-5)


def test_who_hands_out_is_known() -> None:
    for name in FRAMEWORKS.names():
        assert isinstance(make_executor(name), OverlappingExecutor) == (name not in WITHOUT)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("framework", ADAPTERS)
def test_gradients_outputs_and_order_are_those_without(framework: str, size: int) -> None:
    check_handed(executor_of(framework), batches(1)[0], size)


@pytest.mark.parametrize("framework", ADAPTERS)
def test_minibatches_of_other_sizes_and_other_buffers_follow(framework: str) -> None:
    executor = executor_of(framework)
    gradients = [buffers_of(executor) for _ in range(2)]
    buckets = [buffers.buckets(size) for buffers, size in zip(gradients, (1, 200), strict=True)]
    for number in (0, 1, 0):
        batch = batches(1, size=3 + number)[0]
        _, handed = hand_out(executor, batch, gradients[number], buckets[number])
        _, expected = plain(executor, batch)
        for names, values in handed:
            np.testing.assert_allclose(values, np.concatenate([expected[n].reshape(-1) for n in names]), rtol=1e-12)


@pytest.mark.parametrize("framework", ADAPTERS)
def test_a_plain_run_afterwards_leaves_the_buffers_alone(framework: str) -> None:
    executor = executor_of(framework)
    gradients = buffers_of(executor)
    first, second = batches(2)
    executor.gradient_buckets(first, "loss", gradients, gradients.buckets(200), lambda bucket: None)  # type: ignore[attr-defined]
    before = [buffer.array.copy() for buffer in gradients]
    _, alone = plain(executor, second)
    for buffer, values in zip(gradients, before, strict=True):
        np.testing.assert_array_equal(buffer.array, values)
    assert any((gradients[name] != value).any() for name, value in alone.items())


class Interrupted(BaseException):
    """No ``Exception``, as ``KeyboardInterrupt`` is none."""


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, Interrupted])
@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("framework", ADAPTERS)
def test_what_on_bucket_raises_is_raised_as_it_is(framework: str, number: int, kind: type[BaseException]) -> None:
    executor: Any = executor_of(framework)
    gradients = buffers_of(executor)
    buckets = gradients.buckets(1)
    error = kind("from on_bucket")
    seen: list[Bucket] = []

    def fail(bucket: Bucket) -> None:
        seen.append(bucket)
        if bucket is buckets[number]:
            raise error

    with pytest.raises(kind) as caught:
        executor.gradient_buckets(batches(1)[0], "loss", gradients, buckets, fail)
    assert caught.value is error
    assert seen == buckets[: number + 1]
    check_handed(executor, batches(1)[0], 200)


def side_network() -> Network:
    """Return a network with a parameter that is used twice, and two that the loss does not depend on."""
    random = np.random.default_rng(5)
    nodes = [
        oh.make_node("MatMul", ["x", "twice"], ["a"]),
        oh.make_node("Tanh", ["a"], ["b"]),
        oh.make_node("MatMul", ["b", "twice"], ["c"]),
        oh.make_node("Add", ["c", "offset"], ["y"]),
        oh.make_node("Mul", ["b", "aside"], ["d"]),
        oh.make_node("Tanh", ["d"], ["z"]),
        oh.make_node("MatMul", ["z", "last"], ["w"]),
    ]
    shapes = {"aside": (4,), "twice": (4, 4), "offset": (4,), "last": (4, 2)}
    stored = [onnx.numpy_helper.from_array(random.normal(size=s).astype("float32"), n) for n, s in shapes.items()]
    kinds = [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", s]) for name, s in (("y", 4), ("w", 2))]
    inputs = [oh.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])]
    graph = oh.make_graph(nodes, "side", inputs, kinds, stored)
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))
    network.append_loss("SoftmaxCrossEntropyLoss", prediction="y")
    return network


def side_batch() -> dict[str, np.ndarray]:
    random = np.random.default_rng(6)
    return {"x": random.normal(size=(5, 4)).astype(np.float32), "label": random.integers(0, 4, 5)}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("framework", ADAPTERS)
def test_parameters_that_are_ignored_are_zero_and_those_used_twice_complete(framework: str, size: int) -> None:
    make_executor(framework)  # skips where it is not installed
    executor = adapter_of(framework).from_model(side_network())
    executor.network.train()
    check_handed(executor, side_batch(), size)
    before = parameters_of(executor)
    optimizer = DistributedOptimizer(
        AdamOptimizer(executor, weight_decay=0.1), LocalCommunicator(), bucket_size_bytes=size
    )
    for _ in range(2):
        optimizer.step(side_batch())
        for name in ("aside", "last"):
            assert not optimizer._context.gradients[name].any()
    for name, value in parameters_of(executor).items():
        assert (value == before[name]).all() == (name in ("aside", "last"))


def course(framework: str, base: Any, scheme: Callable[[], Scheme], *, overlaps: bool) -> list[Any]:
    def prepare(optimizer: DistributedOptimizer) -> None:
        assert optimizer._overlaps
        optimizer._overlaps = overlaps

    courses, _ = train(scheme, 2, base, framework, prepare=prepare)
    if scheme().keeps_replicas_equal:
        check_replicas(courses)
    return courses[0]


class Keeping(UpdateRuleOptimizer):
    """Keeps gradients, as momentum at the point ahead does: they must not change behind its back."""

    def __init__(self, executor: GraphExecutor) -> None:
        super().__init__(executor)
        self.kept: dict[str, Any] = {}

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        before = self.kept.get(param_name, grad)
        self.kept[param_name] = grad
        return old_param - 0.1 * (2.0 * grad - before)


def keeping_modifier(executor: GraphExecutor) -> Optimizer:
    kept: dict[str, Any] = {}

    def modify(gradient: Any, parameter: Any, name: str) -> Any:
        before = kept.get(name, gradient)
        kept[name] = gradient
        return 0.5 * (gradient + before)

    return MomentumOptimizer(executor, learning_rate=0.1, gradient_modifier=modify)


COURSES: dict[str, tuple[Any, Callable[[], Scheme]]] = {
    **{name: (base, AllReduce) for name, base in BASES.items()},
    "accumulation": (functools.partial(MomentumOptimizer, learning_rate=0.1, accumulation_steps=2), AllReduce),
    "clipping": (functools.partial(AdamOptimizer, learning_rate=0.01, clip_norm=0.1, ema_decay=0.9), AllReduce),
    "a rule that keeps gradients": (Keeping, AllReduce),
    "a modifier that keeps gradients": (keeping_modifier, AllReduce),
    "a part of the parameters": (BASES["Momentum"], Zero1),
    "error feedback": (BASES["SGD"], functools.partial(TopK, 0.1)),
}


#: Under TensorFlow a course takes seconds, since each traces graphs; these tell most.
QUICK = ("Adam", "accumulation", "a part of the parameters")

PAIRS = [
    pytest.param(framework, what, marks=pytest.mark.slow if framework == "tensorflow" and what not in QUICK else ())
    for framework in ADAPTERS
    for what in COURSES
]


@pytest.mark.parametrize(("framework", "what"), PAIRS)
def test_training_takes_the_course_of_gradients_that_are_copied(framework: str, what: str) -> None:
    base, scheme = COURSES[what]
    check_equal(course(framework, base, scheme, overlaps=True), course(framework, base, scheme, overlaps=False), 1e-12)


@pytest.mark.parametrize("framework", [name for name in ADAPTERS if name != "reference"])
def test_the_frameworks_own_optimizers_take_it_too(framework: str) -> None:
    kind = adapter_of(framework).AdamOptimizer
    base = functools.partial(kind, loss="loss", learning_rate=0.01)
    copied, handed = (course(framework, base, AllReduce, overlaps=overlaps) for overlaps in (False, True))
    check_equal(handed, copied, 1e-12)
