"""Text, symbol by symbol: the next one is to be predicted."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import DatasetError
from deep500.core.files import read_regular
from deep500.core.texts import shown_path
from deep500.datasets.text_dataset import TextDataset, encode_characters

__all__ = ["text"]

_LEVELS = ("byte", "character")


def text(
    input_node: str = "input",
    label_node: str = "label",
    *,
    path: str | PathLike[str] | None = None,
    level: str = "byte",
    context: int = 128,
    stride: int | None = None,
    validation_fraction: float = 0.1,
) -> tuple[TextDataset, TextDataset]:
    """Return a text's windows, split by position: its beginning is the training set, its end the validation set.

    A sample is int64 ``[context]``, the numbers of successive symbols; its label is int64 ``[context]``, the number of
    the symbol behind each. No symbol of the validation set is seen in the training set's windows or labels. Of each
    part, ``symbol_count``, ``byte_count`` and ``bytes_per_symbol`` tell its size, and ``bits_per_byte(loss)`` makes a
    cross-entropy comparable between levels.

    The default text is that of the Python standard library's ``pydoc_data.topics``, the language reference by topics,
    which comes with Python: about half a megabyte, which differs a little between Python's versions. Results on it
    compare within one version of Python.

    Args:
        input_node: Name of the network's input that the windows are for.
        label_node: Name of the network's input that the following symbols are for.
        path: A file to read instead.
        level: ``"byte"``: 256 symbols, any file. ``"character"``: the characters that occur in the text, a UTF-8 file.
        context: Number of symbols a window.
        stride: Distance of the beginnings of neighbouring windows; by default ``context``, so that each symbol is
            predicted once an epoch.
        validation_fraction: Which share of the symbols, at the end, is the validation set.

    Returns:
        The training set and the validation set.

    Raises:
        DatasetError: The file cannot be read, is no UTF-8, or too short; or an argument is not accepted.
    """
    if level not in _LEVELS:
        raise DatasetError(f"level was given as {level!r}; accepted are {' and '.join(map(repr, _LEVELS))}.")
    if (
        isinstance(validation_fraction, bool)
        or not isinstance(validation_fraction, (int, float))
        or not 0 < validation_fraction < 1
    ):
        raise DatasetError(
            f"validation_fraction was given as {validation_fraction!r}; accepted are numbers between 0 and 1."
        )
    content = _topics() if path is None else _file(path)
    symbols, vocabulary = _symbols(content, level, "the text" if path is None else shown_path(path))
    split = len(symbols) - round(len(symbols) * validation_fraction)
    train, test = (
        TextDataset(part, context, vocabulary=vocabulary, stride=stride, input_node=input_node, label_node=label_node)
        for part in (symbols[:split], symbols[split:])
    )
    return train, test


def _symbols(content: bytes, level: str, where: str) -> tuple[NDArray[Any], list[str] | None]:
    if level == "byte":
        return np.frombuffer(content, np.uint8), None
    try:
        decoded = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{where} is no UTF-8 text: byte {error.start:,} is {content[error.start]:#04x}. Convert it, or use "
            f"level='byte'."
        ) from error
    vocabulary = sorted(set(decoded))
    return encode_characters(decoded, vocabulary), vocabulary


def _topics() -> bytes:
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise DatasetError(
            f"This Python comes without pydoc_data.topics, which is the default text ({error}). Name a text with "
            f"path=..."
        ) from error
    return "\n\n".join(topics[name].strip() for name in sorted(topics)).encode()


def _file(path: str | PathLike[str]) -> bytes:
    try:
        return read_regular(Path(path).expanduser())
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        shown = shown_path(path) if isinstance(path, (str, PathLike)) else repr(path)
        raise DatasetError(f"The text {shown} cannot be read: {error}.") from error
