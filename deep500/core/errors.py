"""The errors that Deep500 raises on purpose.

Every error that a user can cause derives from :class:`Deep500Error` and says in one message what was received, what
is accepted, and what to do. Errors that stand for a well-known Python error derive from that one as well, so that
``except KeyError`` and the like keep working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = [
    "CheckpointError",
    "CommunicationError",
    "CompileError",
    "DatasetError",
    "Deep500Error",
    "DeviceError",
    "FileWriteError",
    "FleetError",
    "InvalidInputError",
    "InvalidNetworkError",
    "MeasurementError",
    "MissingDependencyError",
    "OperatorError",
    "PluginError",
    "RecipeError",
    "TrainingError",
    "UnknownNameError",
    "UnsupportedOperatorError",
    "near_miss",
]


class Deep500Error(Exception):
    """Base of every error that Deep500 raises on purpose."""


class InvalidNetworkError(Deep500Error, ValueError):
    """A network, or a file that should hold one, is not valid ONNX or contradicts itself."""


class InvalidInputError(Deep500Error, ValueError):
    """A tensor that was fed has the wrong name, dtype or shape."""


class OperatorError(Deep500Error, ValueError):
    """An operator was given attributes or inputs that its specification forbids."""


class CompileError(Deep500Error, RuntimeError):
    """The C++ or CUDA sources of an operator cannot be compiled.

    Attributes:
        command: The command that failed; empty where none was run.
        output: All that the compiler said.
    """

    def __init__(self, message: str, command: Sequence[str] = (), output: str = "") -> None:
        """Keep the message, the command and the compiler's output."""
        super().__init__(message)
        self.command = tuple(command)
        self.output = output


class UnsupportedOperatorError(Deep500Error, NotImplementedError):
    """A framework adapter has no lowering for an operator of a network."""


class UnknownNameError(Deep500Error, KeyError):
    """A name is not among those that are known."""

    def __str__(self) -> str:
        """Return the message itself (``KeyError`` would quote it)."""
        return str(self.args[0]) if self.args else ""


class PluginError(Deep500Error, ImportError):
    """A plug-in file exists but does not offer what its contract asks for."""


class MissingDependencyError(Deep500Error, ImportError):
    """An optional library is not installed; the message names the extra that brings it."""


class DeviceError(Deep500Error, RuntimeError):
    """A device was named wrongly or is not there."""


class DatasetError(Deep500Error, ValueError):
    """A data set cannot be found, or its files are not what they should be."""


class FileWriteError(Deep500Error, OSError):
    """A file cannot be written where it was asked for."""


class FleetError(Deep500Error, ValueError):
    """A campaign, or the outcomes of many jobs, cannot be what they were given as, or cannot be read."""


class TrainingError(Deep500Error, RuntimeError):
    """A sampler, an optimizer or the trainer was used in a way that cannot work."""


class CheckpointError(Deep500Error, ValueError):
    """A checkpoint is missing, damaged, or of another training than the one that is to go on."""


class CommunicationError(Deep500Error, RuntimeError):
    """Ranks cannot exchange what was asked for: a buffer is refused, calls do not match, or a peer is gone."""


class RecipeError(Deep500Error, ValueError):
    """A recipe is incomplete, contradicts itself or names what does not exist."""


class MeasurementError(Deep500Error, ValueError):
    """Measurements do not support the statement that was asked of them, or were taken in a way that cannot work."""


def near_miss(name: object, known: Iterable[str]) -> str:
    """Return a hint such as ``" Did you mean 'lenet'?"``, or an empty string when nothing is close or no text."""
    if not isinstance(name, str):
        return ""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
