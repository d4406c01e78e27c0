"""How many GPUs a test declares with ``@pytest.mark.gpus(n)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from deep500.core.texts import shown

__all__ = ["MARK", "declared_gpus"]

#: The name of the mark.
MARK = "gpus"


def declared_gpus(item: pytest.Item) -> int | None:
    """Return how many GPUs a test declares; ``None`` where neither it nor anything around it does.

    The closest mark counts: that of the parameter set (the greatest, when several parameters have one), then the
    function's own, then that of its class (before those that the class inherits from), its module, its package. Of two
    decorators of one function or class, the inner one counts. ``gpus(0)`` takes back what stands around it.

    Raises:
        pytest.UsageError: The mark that counts has not exactly one whole number from 0.
    """
    for node in item.iter_parents():
        of_parameters = [mark for mark in getattr(getattr(node, "callspec", None), "marks", ()) if mark.name == MARK]
        if of_parameters:
            return max(_count(mark, item) for mark in of_parameters)
        marks = _of_classes(node.obj) if isinstance(node, pytest.Class) else []
        marks = marks or [mark for mark in node.own_markers if mark.name == MARK]
        if marks:
            return _count(marks[0], item)
    return None


def _of_classes(own: type) -> Sequence[Any]:
    """Return the marks of a class, else of the next that it inherits from.

    Pytest's own order has those of the base classes first.
    """
    for ancestor in own.__mro__:
        given = vars(ancestor).get("pytestmark", [])
        marks = [mark for mark in (given if isinstance(given, (list, tuple)) else [given]) if mark.name == MARK]
        if marks:
            return marks
    return []


def _count(mark: Any, item: pytest.Item) -> int:
    arguments = [shown(value) for value in mark.args] + [f"{name}={shown(v)}" for name, v in mark.kwargs.items()]
    value = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise pytest.UsageError(
            f"{item.nodeid}: the mark was given as gpus({', '.join(arguments)}); accepted is one whole number from 0, "
            f"as in @pytest.mark.gpus(2)."
        )
    return value
