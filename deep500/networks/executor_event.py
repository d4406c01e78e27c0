"""Hooks into an executor's runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deep500.core.event import Event

__all__ = ["ExecutorEvent"]


class ExecutorEvent(Event):
    """A listener of one executor. Tensors are those of the executor's framework."""

    def before_executor(self, inputs: Mapping[str, Any]) -> None:
        """Called before an inference or backpropagation, with what was fed."""

    def after_inference(self, outputs: Mapping[str, Any]) -> None:
        """Called after an inference with its outputs."""

    def after_backprop(self, outputs: Mapping[str, Any]) -> None:
        """Called after a backpropagation with the outputs of its forward part; gradients can be fetched."""
