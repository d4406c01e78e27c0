from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import TrainingError
from deep500.core.event import Event
from deep500.networks.executor_event import ExecutorEvent
from deep500.training.listeners import Listeners, attached
from deep500.training.training_event import OptimizerEvent, RunnerEvent, SamplerEvent


class Equal(SamplerEvent):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize("added", [[], [1], [1, 2, 3]])
def test_exactly_what_was_attached_is_removed(added: list[int]) -> None:
    # The published trainer deleted the last 0 entries of a list: all of them.
    before = [Equal(), Equal()]
    listeners: list[Any] = list(before)
    events = [Equal() for _ in added]

    with attached(listeners, events):
        assert [id(event) for event in listeners] == [id(event) for event in [*before, *events]]

    assert [id(event) for event in listeners] == [id(event) for event in before]


def test_event_that_listens_already_is_not_told_twice_and_stays() -> None:
    mine, other = SamplerEvent(), SamplerEvent()
    listeners = [mine]

    with attached(listeners, [mine, other]):
        assert listeners == [mine, other]

    assert listeners == [mine]


def test_lists_that_events_change_themselves() -> None:
    mine, removed, added = SamplerEvent(), SamplerEvent(), SamplerEvent()
    listeners = [mine]

    with attached(listeners, [removed]):
        listeners.remove(removed)
        listeners.append(added)

    assert listeners == [mine, added]


def test_equal_events_are_told_apart() -> None:
    mine, attached_one, late = Equal(), Equal(), Equal()
    listeners = [mine]

    with attached(listeners, [attached_one]):
        listeners.append(late)

    assert [id(event) for event in listeners] == [id(mine), id(late)]


def test_events_are_removed_when_something_fails() -> None:
    listeners: list[Any] = []
    with pytest.raises(RuntimeError), attached(listeners, [SamplerEvent()]):
        raise RuntimeError

    assert listeners == []


def test_events_are_sorted_by_what_they_listen_to() -> None:
    class Everything(RunnerEvent, SamplerEvent, ExecutorEvent, OptimizerEvent):
        needs_training_accuracy = True

        def before_optimizer_step(self, executor: Any, inputs: Any) -> None:
            pass

    both, runner = Everything(), RunnerEvent()
    sorted_events = Listeners([both, runner, both])

    assert sorted_events.runner == [both, runner]
    assert sorted_events.sampler == sorted_events.executor == [both]
    assert sorted_events.before_step == [both.before_optimizer_step]
    assert sorted_events.after_step == []
    assert sorted_events.need_training_accuracy
    assert not Listeners([runner]).need_training_accuracy


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (RunnerEvent(), "a list of events"),
        (3, "a list of events"),
        ([None], "None"),
        ([Event()], "subclasses of RunnerEvent"),
        ([RunnerEvent], "Make an object of the class"),
    ],
)
def test_what_is_no_event(events: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        Listeners(events)
