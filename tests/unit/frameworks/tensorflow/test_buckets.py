from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CommunicationError, OperatorError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.flat_buffers import ALIGNMENT_BYTES, Bucket
from deep500.frameworks.tensorflow import MomentumOptimizer as KerasMomentum
from deep500.frameworks.tensorflow import TensorFlowExecutor, from_model
from deep500.networks.creation import create_model
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.network import Network
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer
from tests.unit.frameworks.bucket_networks import (
    SPECIAL,
    batch_of,
    branching_network,
    buffers_of,
    expected_gradients,
    handed_out,
    looping_network,
    two_dtypes_network,
)

SIZES = [1, 100, 1 << 20]


def check(executor: TensorFlowExecutor, inputs: Any, loss: str = "loss", size: int = 1) -> None:
    order, handed = handed_out(executor, inputs, loss, size)
    assert order == [bucket.names for bucket in buffers_of(executor).buckets(size)]
    for name, value in expected_gradients(executor, inputs, loss).items():
        assert handed[name].dtype == value.dtype
        np.testing.assert_allclose(handed[name], value, rtol=1e-12 if value.dtype == np.float64 else 1e-5, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", SPECIAL)
def test_gradients_of_special_networks_are_handed_out(case: str, size: int) -> None:
    make, others, loss = SPECIAL[case]
    executor = from_model(make())
    executor.network.train()
    check(executor, batch_of(**others), loss, size)


def convolutional(dtype: str = "float64", compile: bool = False) -> TensorFlowExecutor:
    """Return an executor whose kernels are held in another layout than they are declared in."""
    network = create_model("simple_cnn", shape=(2, 4, 4), widths=(3, 5), classes=4, dtype=dtype)
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = from_model(network, compile=compile)
    executor.network.train()
    return executor


def images(number: int = 0, size: int = 6, dtype: str = "float64") -> dict[str, Any]:
    stream = np.random.default_rng(number)
    return {"input": stream.normal(size=(size, 2, 4, 4)).astype(dtype), "label": stream.integers(0, 4, size)}


def test_other_sizes_of_a_minibatch_are_no_new_graphs_and_other_buckets_are() -> None:
    executor = convolutional()
    optimizer = DistributedOptimizer(MomentumOptimizer(executor), LocalCommunicator(), bucket_size_bytes=100)
    assert len(optimizer._buckets) > 2
    for number in range(6):
        optimizer.step(images(number, 2 + number % 3))
    assert executor.trace_count() == 1
    assert len(optimizer.updates._applied) == 1  # type: ignore[attr-defined]
    gradients = buffers_of(executor)  # others, of the same names
    executor.gradient_buckets(images(), "loss", gradients, gradients.buckets(100), lambda bucket: None)
    assert executor.trace_count() == 1
    executor.gradient_buckets(images(), "loss", gradients, gradients.buckets(1000), lambda bucket: None)
    assert executor.trace_count() == 2


@pytest.mark.parametrize("size", SIZES)
def test_more_ranks_than_threads_of_tensorflow_do_not_wait_for_each_other(size: int) -> None:
    ranks = 5

    def run(communicator: LocalCommunicator) -> list[bytes]:
        executor = executors[communicator.rank]
        optimizer = DistributedOptimizer(KerasMomentum(executor), communicator, bucket_size_bytes=size)
        for number in range(3):
            optimizer.step(images(ranks * number + communicator.rank, 2))
        return [value.tobytes() for value in executor.network.fetch_tensors(executor.network.get_params())]

    executors = [convolutional() for _ in range(ranks)]
    found = run_threads(ranks, run)
    assert all(values == found[0] for values in found)


def test_ranks_that_take_different_branches_update_the_same() -> None:
    def run(communicator: LocalCommunicator) -> list[np.ndarray]:
        executor = executors[communicator.rank]
        optimizer = DistributedOptimizer(MomentumOptimizer(executor, "loss", 0.1), communicator, bucket_size_bytes=1)
        for number in range(3):
            optimizer.step(batch_of(number=number, flag=np.array(communicator.rank == 0)))
        names = executor.network.get_params()
        return [*executor.network.fetch_tensors(names)]

    executors = [from_model(branching_network()) for _ in range(2)]
    start = executors[0].network.fetch_tensors(executors[0].network.get_params())
    first, second = run_threads(2, run)
    for here, there, before in zip(first, second, start, strict=True):
        assert here.tobytes() == there.tobytes()
        assert (here != before).any()


@pytest.mark.parametrize("size", SIZES)
def test_what_on_bucket_raises_comes_out_as_it_is_and_the_executor_goes_on(size: int) -> None:
    executor, gradients = convolutional(), None
    error = CommunicationError("a peer is gone")
    threads = []

    def fail(bucket: Bucket) -> None:
        threads.append(threading.current_thread())
        raise error

    gradients = buffers_of(executor)
    with pytest.raises(CommunicationError) as caught:
        executor.gradient_buckets(images(), "loss", gradients, gradients.buckets(size), fail)
    assert caught.value is error
    assert threads == [threading.current_thread()]
    check(executor, images(), size=size)


def test_an_error_of_the_network_is_explained_and_ends_the_wait_for_buckets() -> None:
    from deep500.core.errors import InvalidInputError

    executor = convolutional()
    gradients, handed = buffers_of(executor), []
    wrong = images() | {"label": np.full(6, 99)}
    with pytest.raises((InvalidInputError, OperatorError)):
        executor.gradient_buckets(wrong, "loss", gradients, gradients.buckets(1), handed.append)
    assert not handed
    check(executor, images())


class Keeping(UpdateRuleOptimizer):
    """Keeps the gradient itself, which a graph may do by sharing its memory."""

    slots = ("last",)
    elementwise = True

    def update(self, gradient: Any, parameter: Any, slots: Any, scalars: Any) -> Any:
        return parameter - 0.1 * gradient, {"last": gradient}


@pytest.mark.parametrize("make", [two_dtypes_network, branching_network, looping_network])
def test_what_an_update_keeps_does_not_change_with_the_buffers(make: Callable[[], Network]) -> None:
    executor = from_model(make())
    optimizer = DistributedOptimizer(Keeping(executor, "loss"), LocalCommunicator())
    gradients = optimizer._context.gradients
    optimizer.step(batch_of(flag=np.array(True)) if make is branching_network else batch_of())
    expected = {name: gradients[name].copy() for name in gradients.names}
    for buffer in gradients:
        buffer.array[...] = 7
    for name, value in expected.items():
        assert value.any() or make is branching_network
        np.testing.assert_array_equal(optimizer.updates.slot_values(name)["last"], value)


def test_a_buffer_of_one_parameter_where_tensorflow_shares_it_is_copied_too() -> None:
    network = create_model("mlp", classes=4, shape=(16,), hidden=(), dtype="float64")
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = from_model(network)
    optimizer = DistributedOptimizer(Keeping(executor), LocalCommunicator())
    stream = np.random.default_rng(0)
    for _ in range(2):
        optimizer.step({"input": stream.normal(size=(5, 16)), "label": np.arange(5) % 4})
        kept = {name: optimizer._context.gradients[name].copy() for name in executor.network.get_params()}
        for buffer in optimizer._context.gradients:
            assert buffer.array.ctypes.data % ALIGNMENT_BYTES == 0  # so that TensorFlow shares it
            buffer.array[...] = 7
        for name, value in kept.items():
            np.testing.assert_array_equal(optimizer.updates.slot_values(name)["last"], value)


@pytest.mark.parametrize("kind", [MomentumOptimizer, KerasMomentum])
def test_options_act_as_in_a_step_without_buckets(kind: Any) -> None:
    options = {"clip_norm": 0.5, "weight_decay": 0.1, "ema_decay": 0.9, "accumulation_steps": 2}
    for dtype, tolerance in (("float64", 1e-12), ("float32", 2e-5)):
        alone, wrapped = convolutional(dtype), convolutional(dtype)
        plain = kind(alone, **options)
        optimizer = DistributedOptimizer(kind(wrapped, **options), LocalCommunicator(), bucket_size_bytes=100)
        for number in range(6):
            batch = images(number, dtype=dtype)
            plain.step(batch)
            optimizer.step(batch)
        assert optimizer.base_optimizer.step_count == plain.step_count == 3
        names = alone.network.get_params()
        for here, there in zip(wrapped.network.fetch_tensors(names), alone.network.fetch_tensors(names), strict=True):
            np.testing.assert_allclose(here, there, rtol=tolerance, atol=tolerance)
        for name, average in optimizer.updates.averages().items():
            np.testing.assert_allclose(average, plain.updates.averages()[name], rtol=tolerance, atol=tolerance)


def test_a_compiled_network_hands_out_what_it_did_without() -> None:
    executor = convolutional(compile=True)
    check(executor, images(), size=100)
    assert "Python" not in executor.compilation["gradient of 'loss'"]


class Looking(ExecutorEvent):
    """Fetches a gradient when backward has ended."""

    def __init__(self) -> None:
        self.executor: TensorFlowExecutor | None = None
        self.seen: list[np.ndarray] = []

    def after_backprop(self, outputs: Any) -> None:
        if self.executor is not None:
            (_, gradient), *_ = self.executor.network.gradient("loss")
            self.seen.append(self.executor.network.fetch_tensors([gradient])[0])


@pytest.mark.parametrize("size", SIZES)
def test_events_see_the_gradients_of_this_rank_and_later_ones_are_exchanged(size: int) -> None:
    executor, looking = convolutional(), Looking()
    executor.events.append(looking)
    gradients = buffers_of(executor)

    def exchange(bucket: Bucket) -> None:
        bucket.array *= 2

    looking.executor = executor
    executor.gradient_buckets(images(), "loss", gradients, gradients.buckets(size), exchange)
    looking.executor = None
    (name, gradient), *_ = executor.network.gradient("loss")
    exchanged = executor.network.fetch_tensors([gradient])[0]
    np.testing.assert_allclose(exchanged, 2 * looking.seen[0], rtol=1e-12)
    np.testing.assert_array_equal(exchanged, gradients[name])
    assert looking.seen[0].ndim == 4  # a kernel, as the network declares it
