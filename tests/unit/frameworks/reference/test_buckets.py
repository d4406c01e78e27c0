from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.flat_buffers import Bucket
from deep500.frameworks.reference import ReferenceExecutor, from_model
from deep500.frameworks.reference._calls import Calls
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.training.optimizers.adam import AdamOptimizer
from tests.unit.frameworks.bucket_networks import (
    SPECIAL,
    batch_of,
    branching_network,
    buffers_of,
    expected_gradients,
    handed_out,
    two_losses_network,
)


def trained(network: Network) -> ReferenceExecutor:
    executor = from_model(network)
    executor.network.train()
    return executor


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
@pytest.mark.parametrize("case", SPECIAL)
def test_gradients_of_special_networks_are_handed_out(case: str, size: int) -> None:
    make, others, loss = SPECIAL[case]
    executor, inputs = trained(make()), batch_of(**others)
    order, handed = handed_out(executor, inputs, loss, size)
    assert order == [bucket.names for bucket in buffers_of(executor).buckets(size)]
    for name, value in expected_gradients(executor, inputs, loss).items():
        assert handed[name].dtype == value.dtype
        np.testing.assert_array_equal(handed[name], value)


def test_a_bucket_is_handed_out_when_its_last_gradient_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    network = create_model("mlp", classes=3, shape=(4,), hidden=(6, 5), dtype="float64")
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = trained(network)
    told: list[str] = []
    differentiate = Calls._differentiate

    def tell(self: Calls, call: Any, values: Any, gradients: Any) -> None:
        differentiate(self, call, values, gradients)
        told.append(call.node.op_type)

    monkeypatch.setattr(Calls, "_differentiate", tell)
    gradients = buffers_of(executor)
    buckets = gradients.buckets(1)

    def take(bucket: Bucket) -> None:
        told.extend(bucket.names)

    batch = {"input": np.ones((2, 4)), "label": np.array([0, 2])}
    executor.gradient_buckets(batch, "loss", gradients, buckets, take)
    calls = [what for what in told if what not in executor.network.parameters]
    assert calls[0] == "SoftmaxCrossEntropyLoss"
    order = [name for bucket in buckets for name in bucket.names]
    assert [what for what in told if what in order] == order
    places = [told.index(name) for name in order]
    assert places[0] < told.index("Relu") < places[-1]  # the last layer's come before backward reaches the one before


def test_a_value_used_again_further_ahead_is_waited_for() -> None:
    executor = trained(two_losses_network())
    program = executor.network.program(frozenset(["x"]))
    course = executor._translation(program).course("first_loss")
    assert course.complete_after(["left"]) < course.complete_after(["common"])
    assert course.complete_after(["right"]) == 0
    assert not course.depends_on_data
    executor = trained(branching_network())
    program = executor.network.program(frozenset(["x", "flag"]))
    course = executor._translation(program).course("loss")
    assert {"left", "right", "common"} <= course.depends_on_data


def test_ranks_that_take_different_branches_update_the_same() -> None:
    def run(communicator: LocalCommunicator) -> list[np.ndarray]:
        executor = executors[communicator.rank]
        optimizer = DistributedOptimizer(AdamOptimizer(executor, "loss", 0.1), communicator, bucket_size_bytes=1)
        for number in range(3):
            optimizer.step(batch_of(number=number, flag=np.array(communicator.rank == 0)))
        return [*executor.network.fetch_tensors(executor.network.get_params())]

    executors = [from_model(branching_network()) for _ in range(2)]
    start = executors[0].network.fetch_tensors(executors[0].network.get_params())
    first, second = run_threads(2, run)
    for here, there, before in zip(first, second, start, strict=True):
        assert here.tobytes() == there.tobytes()
        assert (here != before).any()


def test_what_a_loss_ignores_is_not_updated() -> None:
    executor = trained(two_losses_network())
    before = executor.fetch("right")
    optimizer = DistributedOptimizer(AdamOptimizer(executor, "first_loss", weight_decay=0.5), LocalCommunicator())
    optimizer.step(batch_of())
    np.testing.assert_array_equal(executor.fetch("right"), before)
    assert executor.gradient_tensor("right") is None
    assert executor.gradient_tensor("left") is not None


def test_gradients_are_read_as_the_exchange_left_them_and_as_copies() -> None:
    executor = trained(two_losses_network())
    gradients = buffers_of(executor)

    def double(bucket: Bucket) -> None:
        bucket.array *= 2

    executor.gradient_buckets(batch_of(), "first_loss", gradients, gradients.buckets(1), double)
    exchanged = executor.gradient_tensor("left")
    assert exchanged is not None
    np.testing.assert_array_equal(exchanged, gradients["left"])
    assert not np.shares_memory(exchanged, gradients["left"])
    np.testing.assert_array_equal(exchanged, 2 * expected_gradients(executor, batch_of(), "first_loss")["left"])


def test_what_on_bucket_raises_comes_out_as_it_is_and_the_executor_goes_on() -> None:
    executor = trained(two_losses_network())
    gradients = buffers_of(executor)
    error = CommunicationError("a peer is gone")

    def fail(bucket: Bucket) -> None:
        raise error

    with pytest.raises(CommunicationError) as caught:
        executor.gradient_buckets(batch_of(), "first_loss", gradients, gradients.buckets(1), fail)
    assert caught.value is error
    executor.inference_and_backprop(batch_of(), "first_loss")  # nothing is handed out any more
