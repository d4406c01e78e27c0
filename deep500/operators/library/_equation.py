"""Equations in Einstein's notation."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

from deep500.core.errors import OperatorError

__all__ = ["Equation", "read_equation"]

_ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """An equation for inputs of known rank, every axis named by a letter.

    Attributes:
        inputs: The letters of each input's axes.
        output: Those of the output.
        sizes: The size of each letter's axes; axes of the size 1 may broadcast to it.
    """

    inputs: tuple[str, ...]
    output: str
    sizes: dict[str, int]

    @property
    def text(self) -> str:
        """The equation as NumPy reads it."""
        return f"{','.join(self.inputs)}->{self.output}"


def read_equation(text: str, shapes: Sequence[tuple[int, ...]]) -> Equation:
    """Read an equation, its ellipses replaced by letters of their own.

    Args:
        text: The equation.
        shapes: Shapes of the inputs.

    Raises:
        OperatorError: It does not fit the shapes.
    """
    refusal = OperatorError(
        f"Einsum: received the equation {text!r} for inputs of the shapes {', '.join(map(str, shapes))}; accepted is "
        f"one letter for each axis (or an ellipsis for several), and one size for each letter."
    )
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes) or any(not _is_term(term) for term in [*terms, right]):
        raise refusal
    extra = [len(shape) - len(term.replace(_ELLIPSIS, "")) for term, shape in zip(terms, shapes)]
    if any(count < 0 or (count and _ELLIPSIS not in term) for term, count in zip(terms, extra)):
        raise refusal
    free = [letter for letter in string.ascii_letters if letter not in text]
    names = "".join(free[: max([0, *extra])])
    if len(names) < max(extra):
        raise refusal
    inputs = tuple(term.replace(_ELLIPSIS, names[len(names) - count :]) for term, count in zip(terms, extra))
    if arrow:
        output = right.replace(_ELLIPSIS, names)
    else:
        letters = "".join(inputs)
        once = sorted(letter for letter in set(letters) - set(names) if letters.count(letter) == 1)
        output = names + "".join(once)
    sizes: dict[str, int] = {}
    for term, shape in zip(inputs, shapes):
        for letter, size in zip(term, shape):
            known = sizes.setdefault(letter, size)
            if known == 1:
                sizes[letter] = size
            elif size not in (1, known):
                raise refusal
    if len(set(output)) != len(output) or not set(output) <= set(sizes):
        raise refusal
    return Equation(inputs, output, sizes)


def _is_term(term: str) -> bool:
    letters = term.replace(_ELLIPSIS, "", 1)
    return not letters or (letters.isascii() and letters.isalpha())
