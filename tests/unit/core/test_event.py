from __future__ import annotations

from deep500.core.errors import Deep500Error
from deep500.core.event import Event, StopRun


class Listener(Event):
    def hook(self) -> None:
        """Do nothing."""


class Own(Listener):
    def hook(self) -> None:
        raise StopRun


class Heir(Own):
    pass


def test_overrides_tells_own_hooks_from_empty_ones() -> None:
    assert not Listener.overrides("hook", Listener)
    assert Own.overrides("hook", Listener)
    assert Heir.overrides("hook", Listener)
    assert Listener.overrides("hook", Event)
    assert not Heir.overrides("no_such_hook", Listener)


def test_stopping_is_no_error() -> None:
    assert not issubclass(StopRun, Deep500Error)
