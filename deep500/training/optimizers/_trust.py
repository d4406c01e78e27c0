"""The trust ratio, by which LARS and LAMB fit the step of a layer to the size of its weights."""

from __future__ import annotations

from typing import Any

__all__ = ["trust_ratio"]


def trust_ratio(functions: Any, numerator: Any, divisor: Any, *norms: Any) -> Any:
    """Return ``numerator / divisor``, and 1 when a norm is 0: a layer of zeros could not leave them otherwise.

    Args:
        functions: What computes on the framework's tensors.
        numerator: A scalar tensor.
        divisor: A scalar tensor, not 0 unless one of the norms is.
        *norms: Scalar tensors, from 0.
    """
    usual = functions.sign(norms[0])  # 1 where all norms are above 0, else 0
    for norm in norms[1:]:
        usual = usual * functions.sign(norm)
    # What replaces a 0 keeps the division defined in the case whose result is not taken.
    unusual = functions.ones_like(usual) - usual
    return usual * numerator / (divisor + unusual) + unusual
