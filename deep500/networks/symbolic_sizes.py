"""Sizes that a network leaves open, and the numbers that are put in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.core.errors import InvalidInputError, UnknownNameError, near_miss
from deep500.core.tensor_descriptor import TensorDescriptor

if TYPE_CHECKING:
    from deep500.networks.network import Network

__all__ = ["checked_sizes", "symbolic_sizes"]


def symbolic_sizes(network: Network) -> list[str]:
    """Return the names of the sizes that the inputs of a network leave open, sorted."""
    shapes = [d.shape or () for d in network.inputs.values() if isinstance(d, TensorDescriptor)]
    return sorted({size for shape in shapes for size in shape if isinstance(size, str)})


def checked_sizes(network: Network, sizes: Mapping[str, Any] | None, *, least: int = 1) -> dict[str, int]:
    """Return symbolic sizes by name, after a check.

    Args:
        network: The network.
        sizes: The sizes, such as ``{"batch": 16}``.
        least: The smallest number that is accepted.

    Raises:
        InvalidInputError: A size is no whole number, or too small.
        UnknownNameError: No input has a size of that name.
    """
    known = symbolic_sizes(network)
    for name, size in (sizes or {}).items():
        if name not in known:
            raise UnknownNameError(
                f"No input has a size named {name!r}.{near_miss(str(name), known)} "
                f"Symbolic sizes: {', '.join(known) or 'none'}."
            )
        if isinstance(size, bool) or not isinstance(size, int) or not least <= size < 2**63:
            raise InvalidInputError(
                f"The size {name!r} was given as {size!r}; accepted are whole numbers from {least}."
            )
    return dict(sizes or {})
