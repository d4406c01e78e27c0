from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import CheckpointError, InvalidInputError, TrainingError
from deep500.core.random import random_stream
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.training.catalogue import SAMPLERS
from deep500.training.sampler import Sampler
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.training_event import RunnerEvent, SamplerEvent

ARGUMENTS: dict[str, dict[str, Any]] = {"bucket": {"lengths": lambda sample: sample["x"] % 7}}
KINDS = [
    pytest.param(functools.partial(SAMPLERS.get(name), **ARGUMENTS.get(name, {})), id=name) for name in SAMPLERS.names()
]


def numbered(count: int) -> NumpyDataset:
    return NumpyDataset(np.arange(count), "x", np.zeros(count, int), "y")


def served(sampler: Sampler) -> list[list[int]]:
    return [batch["x"].tolist() for batch in sampler]


class Recorder(SamplerEvent):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_sampler_reset(self, sampler: Sampler) -> None:
        self.calls.append(("reset", sampler.epoch))

    def before_sampling(self, sampler: Sampler, minibatch_size: int) -> None:
        self.calls.append(("before", minibatch_size))

    def after_sampling(self, sampler: Sampler, samples: Mapping[str, Any]) -> None:
        self.calls.append(("after", samples["x"].tolist()))


class Noise:
    """A transformation with random choices."""

    def __init__(self) -> None:
        self.stream: np.random.Generator | None = None
        self.nodes: tuple[str, str | None] | None = None

    def set_random_stream(self, stream: np.random.Generator) -> None:
        self.stream = stream

    def set_dataset_nodes(self, input_node: str, label_node: str | None) -> None:
        self.nodes = (input_node, label_node)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        assert self.stream is not None
        return batch | {"x": batch["x"] + self.stream.random(len(batch["x"]))}


@pytest.mark.parametrize("kind", KINDS)
@given(
    count=st.integers(1, 40), batch_size=st.integers(1, 50), epochs=st.integers(1, 3), seed=st.integers(0, 2**64 - 1)
)
def test_each_sample_once_an_epoch(kind: Any, count: int, batch_size: int, epochs: int, seed: int) -> None:
    sampler = kind(numbered(count), batch_size, seed=seed, drop_last_batch=False)

    for epoch in range(epochs):
        assert sampler.epoch == epoch
        batches = served(sampler)
        assert sorted(chain(*batches)) == list(range(count))
        assert len(batches) == len(sampler) == sampler.position
        assert all(len(batch) == batch_size for batch in batches[:-1])
        assert sampler.sample_count == count
        with pytest.raises(StopIteration):
            next(sampler)
        sampler.reset()


@pytest.mark.parametrize("kind", KINDS)
@given(count=st.integers(1, 40), batch_size=st.integers(1, 40))
def test_dropping_leaves_out_the_smaller_batch_only(kind: Any, count: int, batch_size: int) -> None:
    if batch_size > count:
        with pytest.raises(TrainingError, match="no minibatch is left"):
            kind(numbered(count), batch_size, drop_last_batch=True)
        return

    batches = served(sampler := kind(numbered(count), batch_size, drop_last_batch=True))

    assert all(len(batch) == batch_size for batch in batches)
    assert len(batches) == len(sampler) == count // batch_size
    assert len(set(chain(*batches))) == sampler.sample_count == len(batches) * batch_size


@pytest.mark.parametrize("kind", KINDS)
def test_reset_in_the_middle_starts_the_next_epoch(kind: Any) -> None:
    interrupted, whole = (kind(numbered(10), 3, seed=4) for _ in range(2))
    next(interrupted)
    interrupted.reset()
    served(whole)
    whole.reset()

    assert served(interrupted) == served(whole)


@pytest.mark.parametrize("kind", KINDS)
def test_transformations_draw_from_the_seed_the_epoch_and_their_place(kind: Any) -> None:
    def run(seed: int) -> list[list[list[float]]]:
        sampler = kind(numbered(6), 2, seed=seed, transformations=[Noise(), Noise()])
        first = served(sampler)
        sampler.reset()
        return [first, served(sampler)]

    assert run(1) == run(1)
    assert run(1) != run(2)
    first, second = (np.sort(np.concatenate(epoch)) for epoch in run(1))
    assert not np.array_equal(first, second)


def test_each_minibatch_has_streams_of_its_own() -> None:
    sampler = OrderedSampler(numbered(4), 2, transformations=[Noise(), Noise()], seed=9)
    for epoch in range(2):
        for position, batch in enumerate(sampler):
            streams = [random_stream(9, "sampler", epoch, "batch", position, "transformation", i) for i in (0, 1)]
            samples = np.arange(2) + 2 * position
            np.testing.assert_array_equal(batch["x"], samples + streams[0].random(2) + streams[1].random(2))
        sampler.reset()


@pytest.mark.parametrize("kind", KINDS)
def test_a_minibatch_can_be_built_without_moving_on(kind: Any) -> None:
    sampler, recorder = kind(numbered(10), 3, seed=4, drop_last_batch=False, transformations=[Noise()]), Recorder()
    for _ in range(2):
        expected = served(sampler)
        sampler.position = 1
        sampler.events.append(recorder)
        built = [sampler.batch_at(position)["x"].tolist() for position in (3, 0, 2, 1)]
        sampler.events.clear()
        assert built == [expected[position] for position in (3, 0, 2, 1)]
        assert (sampler.position, recorder.calls) == (1, [])
        sampler.reset()
    for position in (-1, 4):
        with pytest.raises(TrainingError, match="an epoch has 4, numbered from 0"):
            sampler.batch_at(position)


def test_transformation_learns_the_nodes_and_may_be_added_later() -> None:
    noise = Noise()
    sampler = OrderedSampler(numbered(4), 2)
    next(sampler)
    sampler.add_transformation(noise)

    assert noise.nodes == ("x", "y")
    assert served(sampler)[0][0] > 2.0


class Counter:
    """A transformation that remembers."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        self.seen += len(batch["x"])
        return batch | {"x": batch["x"] + 100 * self.seen}

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.seen = state["seen"]


def test_what_a_transformation_remembers_is_saved_too() -> None:
    whole, restored = (OrderedSampler(numbered(6), 2, transformations=[Noise(), Counter()]) for _ in range(2))
    next(whole)
    restored.restore(json.loads(json.dumps(whole.state())))

    assert served(restored) == served(whole)
    with pytest.raises(CheckpointError, match=r"states \{\}; here those that remember something are 1"):
        restored.restore(whole.state() | {"transformations": {}})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 3}, "batch_size was 2, here it is 3"),
        ({"seed": 1}, "seed was 0, here it is 1"),
        ({"dataset": numbered(11)}, "samples was 10, here it is 11"),
        ({"drop_last_batch": True}, "drop_last_batch was False"),
        ({"transformations": [Noise()]}, "transformations was"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_state_of_another_sampler_changes_nothing(kind: Any, arguments: dict[str, Any], message: str) -> None:
    fixed: dict[str, Any] = {"dataset": numbered(10), "batch_size": 2, "seed": 0, "drop_last_batch": False}
    saved = kind(**fixed)
    next(saved)
    other = kind(**(fixed | arguments))

    with pytest.raises(CheckpointError, match=message):
        other.restore(saved.state())
    assert (other.epoch, other.position) == (0, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position": 6}, "an epoch has 5 minibatches"),
        ({"position": -1}, "position -1"),
        ({"epoch": 1.5}, r"epoch 1\.5"),
        ({"identity": None}, "not the state of a sampler"),
    ],
)
def test_damaged_states_are_refused(change: dict[str, Any], message: str) -> None:
    sampler = OrderedSampler(numbered(10), 2)
    with pytest.raises(CheckpointError, match=message):
        sampler.restore(sampler.state() | change)


def test_stop_iteration_of_a_transformation_does_not_end_the_epoch() -> None:
    def ends(batch: dict[str, Any]) -> Any:
        raise StopIteration

    with pytest.raises(TrainingError, match="raised StopIteration in minibatch 0 of epoch 0"):
        next(OrderedSampler(numbered(3), 2, transformations=[ends]))


def test_events_are_told_in_order() -> None:
    recorder = Recorder()
    sampler = OrderedSampler(
        numbered(3), 2, events=[recorder], transformations=[lambda batch: batch | {"x": batch["x"] * 10}]
    )
    served(sampler)
    sampler.reset()

    assert recorder.calls == [
        ("before", 2),
        ("after", [0, 10]),
        ("before", 1),
        ("after", [20]),
        ("reset", 1),
    ]


def test_list_of_events_is_not_shared_with_the_caller() -> None:
    mine: list[SamplerEvent] = []
    sampler = OrderedSampler(numbered(3), 2, events=mine)
    sampler.events.append(Recorder())

    assert mine == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": np.zeros(3)}, "needs a data set"),
        ({"batch_size": 0}, "batch_size was given as 0"),
        ({"batch_size": 2.0}, "batch_size"),
        ({"batch_size": True}, "batch_size"),
        ({"drop_last_batch": 7}, "True and False"),
        ({"drop_last_batch": True, "batch_size": 11}, "Use a batch_size up to 10"),
        ({"events": [RunnerEvent()]}, "SamplerEvents only"),
        ({"transformations": ["flip"]}, "function of a minibatch"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_arguments_that_are_not_accepted(kind: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        kind(**({"dataset": numbered(10), "batch_size": 2} | arguments))


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, None, True])
def test_seeds_that_are_not_accepted(seed: Any) -> None:
    with pytest.raises(InvalidInputError, match="seed"):
        ShuffleSampler(numbered(3), 1, seed=seed)


def test_transformation_that_forgets_to_return_is_named() -> None:
    def forgetful(batch: dict[str, Any]) -> Any:
        batch["x"] += 1

    with pytest.raises(TrainingError, match=r"forgetful.*returned NoneType"):
        next(OrderedSampler(numbered(3), 2, transformations=[forgetful]))  # type: ignore[list-item]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_much_larger_than_the_data(kind: Any) -> None:
    assert served(kind(numbered(1), batch_size=10**30, drop_last_batch=False)) == [[0]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"transformations": 3}, "transformations was given as 3; accepted is a list"),
        ({"transformations": "noise"}, "transformations was given as 'noise'"),
        ({"transformations": [Noise]}, r"the class Noise; accepted is an object of it, Noise\(...\)"),
        ({"events": 3}, "events was given as 3; accepted is a list"),
    ],
)
def test_lists_that_are_none(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        OrderedSampler(numbered(3), 1, **wrong)


@pytest.mark.parametrize("position", [-1, 3, 2**70, "x", None, 0.0, True])
def test_places_where_there_is_no_minibatch(position: Any) -> None:
    with pytest.raises(TrainingError, match="There is no minibatch"):
        OrderedSampler(numbered(3), 1).batch_at(position)


@pytest.mark.parametrize("state", [None, 3, "x", []])
def test_what_is_no_state_of_a_sampler(state: Any) -> None:
    with pytest.raises(CheckpointError, match="not the state of a sampler"):
        OrderedSampler(numbered(3), 1).restore(state)
