"""Hooks and flat buffers of the PyTorch executor: overlap, order, memory, what is refused."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
import torch

from deep500.core.errors import TrainingError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.flat_buffers import Bucket, FlatBuffers
from deep500.frameworks.pytorch import buckets as module
from deep500.frameworks.pytorch.executor import PyTorchExecutor, from_model
from deep500.networks.network import Network
from deep500.training.optimizers.momentum import MomentumOptimizer
from tests.conformance.optimizer_networks import batches, network_of_all_ranks


def trained(network: Network | None = None) -> PyTorchExecutor:
    executor = from_model(network or network_of_all_ranks())
    executor.network.train()
    return executor


def buffers_of(executor: PyTorchExecutor) -> FlatBuffers:
    return FlatBuffers({name: executor.network.parameters[name] for name in executor.network.get_params()})


def test_buckets_are_handed_out_while_backward_runs_and_in_the_order_of_the_list() -> None:
    executor = trained()
    gradients = buffers_of(executor)
    buckets = gradients.buckets(1)
    happened: list[str] = []
    for name in executor.network.get_params():
        executor.stored_tensor(name).register_hook(lambda gradient, name=name: happened.append(f"made {name}"))

    def take(bucket: Bucket) -> None:
        happened.append(f"out {bucket.names[0]}")

    executor.gradient_buckets(batches(1)[0], "loss", gradients, buckets, take)
    assert [entry for entry in happened if entry.startswith("out")] == [f"out {b.names[0]}" for b in buckets]
    assert happened.index("out offset") < happened.index("made kernel")
    happened.clear()
    executor.gradient_buckets(batches(1)[0], "loss", gradients, buckets[::-1], take)
    assert [entry for entry in happened if entry.startswith("out")] == [f"out {b.names[0]}" for b in buckets[::-1]]


def test_the_buffers_are_the_memory_of_the_gradients() -> None:
    executor = trained()
    gradients = buffers_of(executor)
    executor.gradient_buckets(batches(1)[0], "loss", gradients, gradients.buckets(200), lambda bucket: None)
    for name in executor.network.get_params():
        assert np.shares_memory(gradients[name], executor.to_numpy(executor.gradient_tensor(name)))


def test_hooks_do_not_keep_an_executor_alive_and_are_registered_once() -> None:
    executor = trained()
    for _ in range(3):
        gradients = buffers_of(executor)
        executor.gradient_buckets(batches(1)[0], "loss", gradients, gradients.buckets(200), lambda bucket: None)
    parameter: Any = executor.stored_tensor("bias")
    assert len(parameter._post_accumulate_grad_hooks) == 1
    filler = weakref.ref(executor._filler)
    del executor
    gc.collect()
    assert filler() is None


def test_buckets_of_other_tensors_are_refused() -> None:
    executor = trained()
    gradients = buffers_of(executor)
    with pytest.raises(TrainingError, match=r"Received buckets of the tensors .*Accepted is each parameter"):
        executor.gradient_buckets(batches(1)[0], "loss", gradients, gradients.buckets(1)[1:], lambda bucket: None)


def test_a_gradient_that_grows_after_it_was_complete_is_refused() -> None:
    executor = trained()
    gradients = buffers_of(executor)
    buckets = gradients.buckets(1)
    offset = executor.stored_tensor("offset")

    def again(gradient: Any) -> None:
        with torch.enable_grad():
            (offset * 1.0).sum().backward()

    executor.stored_tensor("kernel").register_hook(again)
    with pytest.raises(TrainingError, match="added to the gradient by 'offset' after"):
        executor.gradient_buckets(batches(1)[0], "loss", gradients, buckets, lambda bucket: None)


def branching_network() -> Network:
    """Return a network that uses one of two parameters, as the sign of its input's sum has it."""

    def branch(name: str) -> Any:
        output = oh.make_tensor_value_info(f"of_{name}", onnx.TensorProto.FLOAT, None)
        return oh.make_graph([oh.make_node("Mul", ["x", name], [f"of_{name}"])], name, [], [output])

    nodes = [
        oh.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        oh.make_node("Greater", ["total", "zero"], ["is_positive"]),
        oh.make_node("If", ["is_positive"], ["a"], then_branch=branch("above"), else_branch=branch("below")),
        oh.make_node("Add", ["a", "offset"], ["y"]),
    ]
    values = {"above": [1.0, 2, 3], "below": [3.0, 2, 1], "offset": [0.0, 0, 0], "zero": 0.0}
    stored = [onnx.numpy_helper.from_array(np.float32(value), name) for name, value in values.items()]
    kinds = [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3]) for name in ("x", "y")]
    graph = oh.make_graph(nodes, "branches", kinds[:1], kinds[1:], stored)
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def test_replicas_stay_equal_where_ranks_take_other_branches() -> None:
    executors = [trained(branching_network()) for _ in range(2)]
    names = executors[0].network.get_params()
    assert {"above", "below"} <= set(names)

    def run(communicator: LocalCommunicator) -> list[bytes]:
        executor = executors[communicator.rank]
        optimizer = DistributedOptimizer(MomentumOptimizer(executor, learning_rate=0.5), communicator)
        for _ in range(3):
            x = np.full((2, 3), 1.0 if communicator.rank else -1.0, np.float32)
            optimizer.step({"x": x, "label": np.array([0, 1])})
        return [value.tobytes() for value in executor.network.fetch_tensors(names)]

    first, second = run_threads(2, run)
    assert first == second


def test_parameters_lie_in_the_flat_buffers_of_the_last_context() -> None:
    executor = trained()
    before = {name: executor.fetch(name) for name in executor.network.get_params()}
    parameter = executor.stored_tensor("kernel")
    optimizers = [DistributedOptimizer(MomentumOptimizer(executor), LocalCommunicator(), "local_sgd") for _ in range(2)]
    for optimizer in (*optimizers, *optimizers):
        optimizer.step(batches(1)[0])
        buffers = optimizer._context.fetch_parameters()
        assert executor.stored_tensor("kernel") is parameter
        for name in before:
            assert np.shares_memory(buffers[name], executor.to_numpy(executor.stored_tensor(name)))
            np.testing.assert_array_equal(buffers[name], executor.fetch(name))
        buffers["bias"][...] = 3.0
        optimizer._context.feed_parameters()
        assert (executor.fetch("bias") == 3.0).all()
    assert all((executor.fetch(name) != value).any() for name, value in before.items())


class Event:
    """In the place of a CUDA event; the host may read once it was asked to wait."""

    def __init__(self) -> None:
        self.is_over = False

    def record(self) -> None:
        self.is_over = False

    def synchronize(self) -> None:
        self.is_over = True

    def query(self) -> bool:
        return self.is_over


def test_the_plan_for_a_gpu_hands_out_what_has_come_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(module, "_lock_pages", lambda host: None)
    monkeypatch.setattr(module, "_Plan", module._DevicePlan)
    executor, alone = trained(), trained()
    optimizers = [
        DistributedOptimizer(MomentumOptimizer(e), LocalCommunicator(), bucket_size_bytes=1) for e in (executor, alone)
    ]
    optimizers[1]._overlaps = False
    for batch in batches(3):
        for optimizer in optimizers:
            optimizer.step(batch)
    assert isinstance(executor._filler._plan, module._DevicePlan)
    for name in executor.network.get_params():
        np.testing.assert_array_equal(executor.fetch(name), alone.fetch(name))
        device = executor.to_numpy(executor.gradient_tensor(name))
        assert not np.shares_memory(device, optimizers[0]._context.gradients[name])
        np.testing.assert_array_equal(device, optimizers[0]._context.gradients[name])
