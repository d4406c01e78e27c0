"""The root of all events."""

from __future__ import annotations

__all__ = ["Event", "StopRun"]


class StopRun(Exception):  # noqa: N818 - not an error: an event's way to end a run early and cleanly
    """Raised by an event to end the run early; what was done so far is kept."""


class Event:
    """A listener that is told of what happens during a run.

    Each level adds hooks in a subclass of its own (an executor's, an optimizer's, a sampler's, a trainer's). A hook
    that is not overridden does nothing and costs nothing: callers look hooks up once with :meth:`overrides`.
    """

    @classmethod
    def overrides(cls, hook: str, base: type[Event]) -> bool:
        """Whether this class implements ``hook`` itself instead of inheriting the empty one of ``base``."""
        return getattr(cls, hook, None) is not getattr(base, hook, None)
