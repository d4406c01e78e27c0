"""Calling the hooks of a training's events, so that all ranks of several take the same course."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from deep500.core.event import Event, StopRun
from deep500.training.listeners import Listeners
from deep500.training.ranks import Ranks
from deep500.training.training_event import OptimizerEvent, RunnerEvent, StopTraining

__all__ = ["AgreedStop", "Hooks"]

_Hook = Callable[..., None]

#: The hooks of each step, and who has them, in the order of the attributes of :class:`Hooks`.
_STEP_HOOKS: tuple[tuple[str, type[Event]], ...] = (
    ("before_step", RunnerEvent),
    ("before_optimizer_step", OptimizerEvent),
    ("after_optimizer_step", OptimizerEvent),
    ("after_step", RunnerEvent),
)


class AgreedStop(StopTraining):
    """The end of a training that all ranks know of."""


class Hooks:
    """The hooks of one run's events.

    A single process calls them, and what they raise ends the training. Of several ranks, rank 0's ``StopTraining``
    ends the training on all of them at the same place; one that another rank's event raises counts nothing. Events that
    come last are called when that is decided, so that they may exchange something themselves; they are on all ranks,
    and ask for the end on all of them.

    Attributes:
        before_training_step: The trainer's hooks to call before each step.
        before_step: The optimizer's.
        after_step: The optimizer's hooks to call after each step.
        after_training_step: The trainer's.
    """

    def __init__(self, listeners: Listeners, ranks: Ranks) -> None:
        """Prepare a run, on all ranks together.

        Args:
            listeners: The events of this rank.
            ranks: Who trains together.
        """
        self._listeners, self._ranks = listeners, ranks
        self.before_training_step, self.before_step = listeners.before_training_step, listeners.before_step
        self.after_step, self.after_training_step = listeners.after_step, listeners.after_training_step
        if ranks.size == 1:
            return
        self._first = [event for event in listeners.runner if not _comes_last(event)]
        self._last = [event for event in listeners.runner if _comes_last(event)]
        events = [
            [event for event in listeners.all if isinstance(event, kind) and type(event).overrides(hook, kind)]
            for hook, kind in _STEP_HOOKS
        ]
        stops = [any(not _comes_last(event) and _may_stop(event) for event in found) for found in events]
        agreed = ranks.decided(stops)
        self.before_training_step, self.before_step, self.after_step, self.after_training_step = (
            self._together(hook, found, is_agreed)
            for (hook, _), found, is_agreed in zip(_STEP_HOOKS, events, agreed, strict=True)
        )

    def notify(self, hook: str, *arguments: Any) -> None:
        """Call a hook of all events that listen to the trainer.

        Raises:
            StopRun: One of them, on rank 0, ends the training.
        """
        if self._ranks.size == 1:
            self._listeners.notify(hook, *arguments)
            return
        stop = _told([getattr(event, hook) for event in self._first], arguments)
        if self._ranks.decided(stop):
            raise AgreedStop
        _agreed([getattr(event, hook) for event in self._last], arguments)

    def notify_in_test(self, hook: str, *arguments: Any) -> None:
        """Call a hook within a test, in which ranks are each at their own minibatches.

        Raises:
            StopRun: One of rank 0's events ends the test; the others learn of it at its end.
        """
        if self._ranks.is_first:
            self._listeners.notify(hook, *arguments)
        else:
            _told([getattr(event, hook) for event in self._listeners.runner], arguments)

    def need_whole_test(self) -> bool:
        """Return whether rank 0 is to test by itself, since one of its events must see all minibatches."""
        events = self._listeners.all
        return bool(self._ranks.decided(any(getattr(event, "needs_whole_test", False) for event in events)))

    def _together(self, hook: str, events: Sequence[Event], is_agreed: bool) -> list[_Hook]:
        """Return what to call instead of the hooks of each step; after it, all ranks know whether they go on."""
        ranks = self._ranks
        first = [getattr(event, hook) for event in events if not _comes_last(event)]
        last = [getattr(event, hook) for event in events if _comes_last(event)]

        def call(*arguments: Any) -> None:
            stop = _told(first, arguments)
            if is_agreed and ranks.decided_in_step(int(stop)):
                raise AgreedStop
            _agreed(last, arguments)

        return [call] if events or is_agreed else []


def _told(hooks: Sequence[_Hook], arguments: Sequence[Any]) -> bool:
    """Call hooks, and return whether one of them asks for the end; it keeps no other from being called."""
    stop = False
    for hook in hooks:
        try:
            hook(*arguments)
        except StopRun:
            stop = True
    return stop


def _agreed(hooks: Sequence[_Hook], arguments: Sequence[Any]) -> None:
    """Call hooks that all ranks call together, and that ask for the end on all of them or on none."""
    try:
        for hook in hooks:
            hook(*arguments)
    except StopRun as stop:
        raise AgreedStop from stop


def _comes_last(event: Event) -> bool:
    return bool(getattr(event, "comes_last", False))


def _may_stop(event: Event) -> bool:
    return bool(getattr(event, "may_stop", True))
