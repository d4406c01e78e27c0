"""Sizes that are known only when a graph runs, for an operator's ``infer``.

``infer`` is ordinary Python: it adds and divides sizes, takes their ``max``, compares them. Arithmetic becomes
operations of the graph. A comparison has to be ``True`` or ``False`` at once, which a graph cannot say yet; so
``infer`` is run once for each way in which its comparisons can turn out, and ``tf.where`` chooses among the results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import tensorflow as tf

from deep500.core.errors import Deep500Error, OperatorError
from deep500.core.texts import shown

__all__ = ["Size", "SymbolicTypes", "infer_symbolic"]

#: What ``infer`` returns, checked: the outputs' shapes and the outputs' dtypes.
Types: TypeAlias = tuple[tuple[tuple[Any, ...], ...], tuple[str, ...]]

#: Comparisons of one path. Each may double the number of runs.
_MOST_COMPARISONS = 8


class _TooManyComparisonsError(OperatorError):
    """``infer`` cannot be followed; other errors are refusals of some sizes."""


class _Paths:
    """How the comparisons of the present run of ``infer`` turn out, and which there were."""

    def __init__(self, name: str, decided: Sequence[bool]) -> None:
        self.name = name
        self.decided = decided
        self.conditions: list[tf.Tensor] = []

    def decide(self, condition: tf.Tensor) -> bool:
        number = len(self.conditions)
        if number == _MOST_COMPARISONS:
            raise _TooManyComparisonsError(
                f"{self.name}.infer compares sizes that are known only when the graph runs more than {number} times, "
                f"too often to follow every way. Compare less often, or give the inputs a static shape."
            )
        self.conditions.append(condition)
        return self.decided[number] if number < len(self.decided) else True


class _Condition:
    """A comparison of sizes; it becomes ``True`` in one run of ``infer`` and ``False`` in another."""

    def __init__(self, paths: _Paths, tensor: tf.Tensor) -> None:
        self._paths = paths
        self._tensor = tensor

    def __bool__(self) -> bool:
        return self._paths.decide(self._tensor)


class Size:
    """A size that is known only when the graph runs: an int64 scalar that knows ``+ - * // %`` and comparisons."""

    def __init__(self, paths: _Paths, tensor: tf.Tensor) -> None:
        """Wrap a scalar.

        Args:
            paths: Who decides about comparisons.
            tensor: The size, int64.
        """
        self.tensor = tensor
        self._paths = paths

    def _combine(self, other: Any, function: Callable[[Any, Any], Any], *, swap: bool = False) -> Any:
        if isinstance(other, Size):
            value: Any = other.tensor
        elif isinstance(other, bool) or not hasattr(other, "__index__"):
            return NotImplemented
        else:
            value = tf.constant(operator.index(other), tf.int64)
        result = function(value, self.tensor) if swap else function(self.tensor, value)
        return _Condition(self._paths, result) if result.dtype == tf.bool else Size(self._paths, result)

    def __add__(self, other: Any) -> Any:
        return self._combine(other, tf.add)

    def __radd__(self, other: Any) -> Any:
        return self._combine(other, tf.add, swap=True)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, tf.subtract)

    def __rsub__(self, other: Any) -> Any:
        return self._combine(other, tf.subtract, swap=True)

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, tf.multiply)

    def __rmul__(self, other: Any) -> Any:
        return self._combine(other, tf.multiply, swap=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._combine(other, tf.math.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combine(other, tf.math.floordiv, swap=True)

    def __mod__(self, other: Any) -> Any:
        return self._combine(other, tf.math.floormod)

    def __rmod__(self, other: Any) -> Any:
        return self._combine(other, tf.math.floormod, swap=True)

    def __neg__(self) -> Size:
        return Size(self._paths, -self.tensor)

    def __lt__(self, other: Any) -> Any:
        return self._combine(other, tf.less)

    def __le__(self, other: Any) -> Any:
        return self._combine(other, tf.less_equal)

    def __gt__(self, other: Any) -> Any:
        return self._combine(other, tf.greater)

    def __ge__(self, other: Any) -> Any:
        return self._combine(other, tf.greater_equal)

    def __eq__(self, other: object) -> Any:
        return self._combine(other, tf.equal)

    def __ne__(self, other: object) -> Any:
        return self._combine(other, tf.not_equal)

    def __bool__(self) -> bool:
        return self._paths.decide(tf.not_equal(self.tensor, 0))

    __hash__ = None  # type: ignore[assignment]  # equal sizes are not known to be equal yet

    def __repr__(self) -> str:
        """Return that the size is not known."""
        return "?"


@dataclass(frozen=True)
class SymbolicTypes:
    """What the outputs are like.

    Attributes:
        shapes: Their shapes: numbers, and int64 scalars of the graph.
        dtypes: Names of their dtypes.
        checks: What must hold when the graph runs, each with the reason, since ``infer`` refuses the other sizes.
        is_like_first: Whether all have the shape of the first input, whatever that is.
    """

    shapes: tuple[tuple[Any, ...], ...]
    dtypes: tuple[str, ...]
    checks: tuple[tuple[tf.Tensor, str], ...] = ()
    is_like_first: bool = False


def infer_symbolic(
    name: str, infer: Callable[[Sequence[Any]], Types], shapes: Sequence[tuple[int | tf.Tensor, ...] | None]
) -> SymbolicTypes:
    """Run an operator's ``infer`` on sizes some of which are known only when the graph runs.

    Args:
        name: Name of the operator, for messages.
        infer: From the inputs' shapes to the outputs' shapes and dtypes.
        shapes: Shape of every input: numbers, and int64 scalars for sizes that are not known; ``None`` where absent.

    Raises:
        OperatorError: ``infer`` refuses all sizes, ranks or dtypes depend on a size, or it compares too often.
    """
    result = _explore(name, infer, shapes, ())
    if isinstance(result, Deep500Error):
        raise result
    return result


def _explore(
    name: str, infer: Callable[[Sequence[Any]], Types], shapes: Sequence[Any], decided: tuple[bool, ...]
) -> SymbolicTypes | Deep500Error:
    """Return what ``infer`` gives once its first comparisons have turned out so; the error where it refuses."""
    paths = _Paths(name, decided)
    result: SymbolicTypes | Deep500Error
    try:
        outputs, dtypes = infer([s if s is None else tuple(_wrapped(paths, size) for size in s) for s in shapes])
        result = SymbolicTypes(tuple(tuple(_unwrapped(name, size) for size in shape) for shape in outputs), dtypes)
    except _TooManyComparisonsError:
        raise
    except Deep500Error as error:
        result = error
    if len(paths.conditions) <= len(decided):
        return result
    branches = [_explore(name, infer, shapes, (*decided, way)) for way in (True, False)]
    return _merged(name, paths.conditions[len(decided)], branches[0], branches[1])


def _merged(
    name: str, condition: tf.Tensor, yes: SymbolicTypes | Deep500Error, no: SymbolicTypes | Deep500Error
) -> SymbolicTypes | Deep500Error:
    """Return the one result where a comparison holds and the other where it does not."""
    if isinstance(yes, Deep500Error):
        if isinstance(no, Deep500Error):
            return no
        return replace(no, checks=((tf.logical_not(condition), str(yes)), *no.checks))
    if isinstance(no, Deep500Error):
        return replace(yes, checks=((condition, str(no)), *yes.checks))
    if [len(shape) for shape in yes.shapes] != [len(shape) for shape in no.shapes] or yes.dtypes != no.dtypes:
        raise OperatorError(
            f"{name}.infer returned other ranks or other dtypes depending on a size that is known only when the graph "
            f"runs: {yes.dtypes} of ranks {[len(s) for s in yes.shapes]}, or {no.dtypes} of ranks "
            f"{[len(s) for s in no.shapes]}. Give the inputs a static shape."
        )
    return SymbolicTypes(
        tuple(tuple(_chosen(condition, a, b) for a, b in zip(*both)) for both in zip(yes.shapes, no.shapes)),
        yes.dtypes,
        (
            *((tf.logical_or(tf.logical_not(condition), check), why) for check, why in yes.checks),
            *((tf.logical_or(condition, check), why) for check, why in no.checks),
        ),
    )


def _chosen(condition: tf.Tensor, yes: Any, no: Any) -> Any:
    if isinstance(yes, int) and isinstance(no, int) and yes == no:
        return yes
    return yes if yes is no else tf.where(condition, tf.cast(yes, tf.int64), tf.cast(no, tf.int64))


def _wrapped(paths: _Paths, size: Any) -> Any:
    return size if isinstance(size, int) else Size(paths, size)


def _unwrapped(name: str, size: Any) -> Any:
    if isinstance(size, (int, Size)):
        return size.tensor if isinstance(size, Size) else size
    raise OperatorError(
        f"{name}.infer returned the size {shown(size)}; accepted are whole numbers and what follows from the inputs' "
        f"sizes by + - * // % max and min."
    )
