"""Sorting a training's events by what they listen to, and attaching them for its duration only."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from deep500.core.errors import TrainingError
from deep500.core.event import Event
from deep500.core.stateful import Stateful
from deep500.networks.executor_event import ExecutorEvent
from deep500.training.training_event import OptimizerEvent, RunnerEvent, SamplerEvent

__all__ = ["Listeners", "attached"]

_KINDS: tuple[type[Event], ...] = (RunnerEvent, OptimizerEvent, SamplerEvent, ExecutorEvent)


class Listeners:
    """The events of one run; an event may be of several kinds.

    Attributes:
        runner: Those that listen to the trainer.
        sampler: Those that listen to samplers.
        executor: Those that listen to the executor.
        all: All of them, in the order in which they are told.
        before_step: The hooks to call before each optimizer step.
        after_step: The hooks to call after each optimizer step.
        before_training_step: The trainer's hooks to call before each step.
        after_training_step: The trainer's hooks to call after each step.
        need_training_accuracy: Whether one needs the training accuracy counted.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        """Sort events; one that is given twice is told of everything once.

        Raises:
            TrainingError: Something is not an event, or listens to nothing that happens in a training.
        """
        if isinstance(events, Event) or not isinstance(events, Iterable):
            raise TrainingError(f"events was given as {type(events).__name__}; accepted is a list of events.")
        unique = list({id(event): event for event in events}.values())
        for event in unique:
            if not isinstance(event, _KINDS):
                hint = " Make an object of the class." if isinstance(event, type) else ""
                raise TrainingError(
                    f"An event was given as {event!r}; accepted are objects of subclasses of "
                    f"{', '.join(kind.__name__ for kind in _KINDS)}.{hint}"
                )
        unique.sort(key=lambda event: bool(getattr(event, "comes_last", False)))  # stable: the others keep their order
        self.all: list[Event] = unique
        self.runner = [event for event in unique if isinstance(event, RunnerEvent)]
        self.sampler = [event for event in unique if isinstance(event, SamplerEvent)]
        self.executor = [event for event in unique if isinstance(event, ExecutorEvent)]
        self.before_step = _step_hooks(unique, "before_optimizer_step", OptimizerEvent)
        self.after_step = _step_hooks(unique, "after_optimizer_step", OptimizerEvent)
        self.before_training_step = _step_hooks(unique, "before_step", RunnerEvent)
        self.after_training_step = _step_hooks(unique, "after_step", RunnerEvent)
        self.need_training_accuracy = any(getattr(event, "needs_training_accuracy", False) for event in unique)

    def remembering(self) -> dict[str, Stateful]:
        """Return the events that have a state, by name: the class's, and the number among those of the class."""
        counts: Counter[str] = Counter()
        found: dict[str, Stateful] = {}
        for event in self.all:
            if isinstance(event, Stateful):
                name = f"{type(event).__module__}.{type(event).__qualname__}"
                found[f"{name}:{counts[name]}"] = event
                counts[name] += 1
        return found

    def notify(self, hook: str, *arguments: Any) -> None:
        """Call a hook of all events that listen to the trainer."""
        for event in self.runner:
            getattr(event, hook)(*arguments)


@contextlib.contextmanager
def attached(listeners: list[Any], events: Iterable[Any]) -> Iterator[None]:
    """Append events to a list of listeners, and in the end remove exactly those that were appended.

    An event that is in the list already is not appended, so that it is not told twice, and stays.
    """
    appended: list[Any] = []
    try:
        for event in events:
            if not any(event is present for present in listeners):
                listeners.append(event)
                appended.append(event)
        yield
    finally:
        for event in appended:
            # From the end: it was appended there. By identity: events may compare as equal.
            place = next((i for i in reversed(range(len(listeners))) if listeners[i] is event), None)
            if place is not None:  # an event may have removed itself
                del listeners[place]


def _step_hooks(events: Iterable[Event], hook: str, kind: type[Event]) -> list[Callable[..., None]]:
    # Looked up once: an event that listens to something else costs a step nothing.
    return [getattr(event, hook) for event in events if isinstance(event, kind) and type(event).overrides(hook, kind)]
