"""A call of an operator in a framework, ready to be run again and again: what adapters' ``prepare_call`` returns."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from deep500.core.device import Device
from deep500.core.errors import OperatorError

__all__ = ["PreparedCall", "listed"]


class PreparedCall(abc.ABC):
    """A function of a framework with tensors that lie on its device.

    Attributes:
        device: Where it runs.
        run: Does it once: calls the function, and where gradients were asked for, computes them. On an accelerator it
            may return before the device has finished. Nothing of Deep500's stands between it and the function.
    """

    device: Device
    run: Callable[[], Any]

    @abc.abstractmethod
    def synchronize(self) -> None:
        """Wait until the device has finished."""

    @abc.abstractmethod
    def outputs(self) -> list[NDArray[Any]]:
        """Run it once; return the outputs."""

    def gradients(self) -> list[NDArray[Any] | None]:
        """Run it once; return the gradient by each input, ``None`` where there is none.

        Raises:
            OperatorError: It was prepared without gradients by the outputs.
        """
        if not self._has_gradients:
            raise OperatorError("This call was prepared without gradients by its outputs.")
        return self._gradients_once()

    @property
    @abc.abstractmethod
    def _has_gradients(self) -> bool:
        """Whether gradients by the outputs were given."""

    @abc.abstractmethod
    def _gradients_once(self) -> list[NDArray[Any] | None]:
        """Return what :meth:`gradients` does, once it is known that they were asked for."""


def listed(outputs: Any) -> list[Any]:
    """Return what a function of tensors returned, one tensor or several, as a list."""
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
