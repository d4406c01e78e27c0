"""Formulas of LaTeX as plain text: a terminal sets no mathematics."""

from __future__ import annotations

import re

__all__ = ["plain_formula"]

#: What braces hold, other braces among it.
_BRACED = r"((?:[^{}]|\{[^{}]*\})*)"

#: Commands that do not read as they are called.
_SYMBOLS = {
    "le": "<=",
    "ge": ">=",
    "ne": "!=",
    "cdot": "*",
    "odot": "*",
    "times": "x",
    "ldots": "...",
    "infty": "infinity",
    "to": "->",
    "lfloor": "floor(",
    "rfloor": ")",
    "lceil": "ceil(",
    "rceil": ")",
    "lVert": "|",
    "rVert": "|",
    "left": "",
    "right": "",
    "quad": " ",
}


def plain_formula(formula: str) -> str:
    r"""Return a formula as plain text.

    Args:
        formula: The formula, as LaTeX has it.

    Example:
        >>> plain_formula(r"y = \\frac{1}{n} \\sum_i x_{i + 1}")
        'y = 1/n sum_i x_(i + 1)'
    """
    text = re.sub(r"\\[,;! ]", " ", formula)
    text = re.sub(rf"\\frac\{{{_BRACED}\}}\{{{_BRACED}\}}", lambda match: f"{_one(match[1])}/{_one(match[2])}", text)
    text = re.sub(rf"\\(?:text|mathrm|operatorname)\{{{_BRACED}\}}", r"\1", text)
    text = re.sub(rf"\\sqrt\{{{_BRACED}\}}", r"sqrt(\1)", text)
    text = re.sub(r"\\sqrt *\\?(\w+)", r"sqrt(\1)", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda match: _SYMBOLS.get(match[1], match[1]), text)
    count = 1
    while count:  # indices of indices stand within, and come first
        text, count = re.subn(r"([_^])\{([^{}]*)\}", lambda match: match[1] + _one(match[2]), text)
    text = re.sub(r"\( ", "(", re.sub(r" \)", ")", re.sub(r"[{}\\]", "", text)))
    return " ".join(text.split())


def _one(text: str) -> str:
    """Return what stands as one thing beside others, in parentheses where it would not."""
    return text if re.fullmatch(r"\\?\w*|\\sqrt\\?\w+|\\sqrt\{[^{}]*\}", text) else f"({text})"
