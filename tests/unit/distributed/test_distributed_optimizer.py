"""The distributed optimizer: delegation, hooks, refusals, snapshots, the seam for overlap."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, TrainingError, UnknownNameError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.flat_buffers import Bucket, FlatBuffers
from deep500.distributed.samplers.distributed_sampler import DistributedSampler
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.dpsgd import DPSGD
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.distributed.schemes.top_k import TopK
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.optimizers.lbfgs import LBFGSOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.trainer import Trainer
from tests.unit.distributed.support import RankExecutor, batch
from tests.unit.training.support import clusters


class Recorder(Scheme):
    """Writes down what is called."""

    def __init__(self) -> None:
        self._calls: list[str] = []

    def before_backward(self, context: StepContext) -> None:
        self._calls.append("before_backward")

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        assert all(np.isfinite(context.gradients[name]).all() for name in bucket.names)
        self._calls.append("+".join(bucket.names))

    def after_backward(self, context: StepContext) -> None:
        self._calls.append(f"after_backward {context.is_update}")

    def after_update(self, context: StepContext) -> None:
        self._calls.append(f"after_update {context.updates_done}")


def test_hooks_are_called_in_order_with_buckets_from_the_last_parameter() -> None:
    executor, scheme = RankExecutor(), Recorder()
    optimizer = DistributedOptimizer(
        GradientDescent(executor, accumulation_steps=2), LocalCommunicator(), scheme, bucket_size_bytes=1
    )
    first, second = reversed(executor.network.get_params())
    for _ in range(2):
        optimizer.step(batch())
    start = ["before_backward", first, second]
    assert scheme._calls == [*start, "after_backward False", *start, "after_backward True", "after_update 1"]


def test_hyperparameters_are_those_of_the_base() -> None:
    base = MomentumOptimizer(RankExecutor(), learning_rate=0.5, clip_norm=2.0)
    optimizer = DistributedOptimizer(base, LocalCommunicator())
    assert optimizer.hyperparameter_names == base.hyperparameter_names
    optimizer.learning_rate = 0.25
    optimizer.step_count = 7
    assert (base.learning_rate, base.step_count, optimizer.clip_norm) == (0.25, 7, 2.0)
    with pytest.raises(AttributeError, match="DistributedOptimizer has no attribute 'beta1'"):
        _ = optimizer.beta1


@pytest.mark.parametrize("options", [{"clip_norm": 0.05}, {"clip_value": 0.01}, {"accumulation_steps": 2}])
def test_options_see_the_gradients_after_the_exchange(options: dict[str, Any]) -> None:
    def run(communicator: LocalCommunicator) -> list[np.ndarray]:
        executor = RankExecutor()
        optimizer = DistributedOptimizer(AdamOptimizer(executor, **options), communicator)
        for number in range(4):
            optimizer.step(batch(10 * number + communicator.rank))
        return executor.network.fetch_tensors(executor.network.get_params())

    alone = RankExecutor()
    optimizer = AdamOptimizer(alone, **options)
    for number in range(4):
        both = [batch(10 * number + rank) for rank in range(2)]
        optimizer.step({name: np.concatenate([part[name] for part in both]) for name in both[0]})
    expected = alone.network.fetch_tensors(alone.network.get_params())
    for found in run_threads(2, run):
        for here, there in zip(found, expected, strict=True):
            np.testing.assert_allclose(here, there, rtol=0, atol=1e-12)


def test_every_rank_starts_with_the_parameters_of_rank_0() -> None:
    def run(communicator: LocalCommunicator) -> float:
        executor = RankExecutor()
        executor.network.feed_tensor(executor.bias, np.full(3, float(communicator.rank + 1)))
        DistributedOptimizer(GradientDescent(executor), communicator)
        return float(executor.network.fetch_tensors([executor.bias])[0][0])

    assert run_threads(3, run) == [1.0, 1.0, 1.0]


def different(make: Callable[[int], tuple[Any, Any]]) -> str:
    """Return what is raised where ranks make optimizers of ``make(rank)``: base and scheme."""

    def run(communicator: LocalCommunicator) -> None:
        base, scheme = make(communicator.rank)
        DistributedOptimizer(base, communicator, scheme)

    with pytest.raises(TrainingError) as caught:
        run_threads(3, run)
    return str(caught.value)


def test_ranks_that_were_given_different_arguments_are_told_so() -> None:
    said = different(lambda rank: (GradientDescent(RankExecutor()), LocalSGD(2 if rank == 1 else 3)))
    assert "the scheme of ranks 1 is not that of rank 0; here, on rank" in said
    assert "period" in said
    said = different(lambda rank: (GradientDescent(RankExecutor()), DPSGD() if rank == 2 else AllReduce()))
    assert "the scheme of ranks 2 is not" in said
    said = different(lambda rank: (GradientDescent(RankExecutor(), learning_rate=0.1 + (rank > 0)), AllReduce()))
    assert "the base optimizer of ranks 1, 2 is not" in said


def test_what_is_not_accepted_is_refused() -> None:
    executor = RankExecutor()
    base = GradientDescent(executor)
    with pytest.raises(TrainingError, match="needs a communicator as its second argument; received 'mpi'"):
        DistributedOptimizer(base, "mpi")  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="needs an optimizer as its first argument"):
        DistributedOptimizer(executor, LocalCommunicator())  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="LBFGSOptimizer has a step of its own"):
        DistributedOptimizer(LBFGSOptimizer(executor), LocalCommunicator())
    with pytest.raises(TrainingError, match=r"scheme was given as .*accepted is a Scheme or one of: allreduce"):
        DistributedOptimizer(base, LocalCommunicator(), 3)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="Did you mean 'allreduce'"):
        DistributedOptimizer(base, LocalCommunicator(), "allreduc")
    with pytest.raises(TrainingError, match="bucket_size_bytes was given as 0"):
        DistributedOptimizer(base, LocalCommunicator(), bucket_size_bytes=0)
    scheme = TopK()
    DistributedOptimizer(base, LocalCommunicator(), scheme)
    with pytest.raises(TrainingError, match="This TopK belongs to an optimizer already"):
        DistributedOptimizer(base, LocalCommunicator(), scheme)


def test_a_snapshot_of_another_scheme_rank_or_network_is_refused_and_changes_nothing() -> None:
    optimizer = DistributedOptimizer(MomentumOptimizer(RankExecutor()), LocalCommunicator(), TopK(0.5))
    optimizer.step(batch())
    state = optimizer.state()
    before = repr(optimizer.state())
    others = [
        {**state, "rank": 1},
        {**state, "scheme": {**state["scheme"], "scheme": "OneBit"}},
        {**state, "scheme": {**state["scheme"], "arguments": {"density": 0.1}}},
        {**state, "scheme": {**state["scheme"], "kept": {"residuals": {"float64": np.zeros(3)}}}},
        {**state, "base": {**state["base"], "optimizer": "Adam"}},
        {name: value for name, value in state.items() if name != "step"},
    ]
    for other in others:
        with pytest.raises(CheckpointError):
            optimizer.restore(other)
        assert repr(optimizer.state()) == before
    optimizer.restore(state)
    assert repr(optimizer.state()) == before


class OverlappingLinear(RankExecutor):
    """Hands its gradients out by itself, in the buffers."""

    def gradient_buckets(
        self,
        inputs: Any,
        loss: str,
        gradients: FlatBuffers,
        buckets: list[Bucket],
        on_bucket: Callable[[Bucket], None],
    ) -> dict[str, Any]:
        outputs = self.inference_and_backprop(inputs, loss)
        for bucket in buckets:
            for name in bucket.names:
                gradients[name][...] = self.gradients[name]
                self.gradients[name] = gradients[name]
            on_bucket(bucket)
        return outputs


def test_an_executor_that_overlaps_is_used_and_gives_the_same() -> None:
    def course(kind: type[RankExecutor]) -> list[bytes]:
        def run(communicator: LocalCommunicator) -> list[bytes]:
            executor = kind()
            optimizer = DistributedOptimizer(MomentumOptimizer(executor), communicator, bucket_size_bytes=8)
            for number in range(3):
                optimizer.step(batch(3 * number + communicator.rank))
            return [value.tobytes() for value in executor.network.fetch_tensors(executor.network.get_params())]

        found = run_threads(2, run)
        assert found[0] == found[1]
        return found[0]

    assert course(RankExecutor) == course(OverlappingLinear)


class BranchExecutor(RankExecutor):
    """A network whose loss ignores a parameter on rank 1, and on both ranks in the third step."""

    rank = steps = 0

    def inference_and_backprop(self, inputs: Any, loss: str = "loss") -> dict[str, Any]:
        outputs = super().inference_and_backprop(inputs, loss)
        self.steps += 1
        if self.rank == 1 or self.steps == 3:
            del self.gradients[self.network.get_params()[0]]
        return outputs


@pytest.mark.parametrize("kind", [GradientDescent, MomentumOptimizer])
def test_a_parameter_that_one_rank_ignores_is_updated_by_both(kind: Any) -> None:
    def run(communicator: LocalCommunicator) -> list[list[np.ndarray]]:
        executor = BranchExecutor()
        executor.rank = communicator.rank
        optimizer = DistributedOptimizer(kind(executor), communicator)
        course = []
        for number in range(4):
            optimizer.step(batch(2 * number + communicator.rank))
            course.append(executor.network.fetch_tensors(executor.network.get_params()))
        return course

    first, second = run_threads(2, run)
    for own, other in zip(first, second, strict=True):
        for value, expected in zip(own, other, strict=True):
            assert value.tobytes() == expected.tobytes()
    assert not np.array_equal(first[0][0], first[1][0])  # what one rank alone has is used
    assert np.array_equal(first[1][0], first[2][0])  # what nobody has changes nothing


def test_a_scheme_without_hooks_is_refused_where_there_are_other_ranks() -> None:
    class Idle(Scheme):
        """Exchanges nothing."""

    def run(communicator: LocalCommunicator) -> None:
        for scheme in (Scheme(), Idle()):
            with pytest.raises(TrainingError, match=r"overrides no hook.*on_bucket"):
                DistributedOptimizer(GradientDescent(RankExecutor()), communicator, scheme)

    run_threads(2, run)
    DistributedOptimizer(GradientDescent(RankExecutor()), LocalCommunicator(), Idle()).step(batch())


def test_gradients_that_an_optimizer_keeps_are_not_overwritten() -> None:
    kept: list[np.ndarray] = []

    def keep(gradient: Any, parameter: Any, name: str) -> Any:
        kept.append(gradient)
        return gradient

    optimizer = DistributedOptimizer(
        GradientDescent(RankExecutor(), gradient_modifier=keep), LocalCommunicator(), AllReduce()
    )
    optimizer.step(batch())
    for gradient in kept:
        assert not any(np.shares_memory(gradient, buffer.array) for buffer in optimizer._context.gradients)


def test_a_trainer_trains_and_goes_on_from_its_snapshot() -> None:
    def run(communicator: LocalCommunicator, epochs: list[int]) -> list[bytes]:
        made = []
        for _ in epochs:
            executor = RankExecutor()
            optimizer = DistributedOptimizer(MomentumOptimizer(executor), communicator, TopK(0.3))
            sampler = DistributedSampler(clusters(), 4, communicator, seed=3)
            made.append(Trainer(sampler, OrderedSampler(clusters(11, seed=1), 4), executor, optimizer))
        for trainer, before, count in zip(made, [None, *made], epochs, strict=False):
            if before is not None:
                trainer.restore(before.state())
            trainer.run_loop(count, events=[])
        assert made[-1].optimizer.step_count == 3 * 4
        names = made[-1].executor.network.get_params()
        return [value.tobytes() for value in made[-1].executor.network.fetch_tensors(names)]

    whole, parts = (run_threads(2, functools.partial(run, epochs=epochs)) for epochs in ([3], [1, 3]))
    assert whole[0] == whole[1] == parts[0] == parts[1]
