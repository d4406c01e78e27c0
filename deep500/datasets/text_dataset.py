"""Text, symbol by symbol."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.counts import check_count
from deep500.core.errors import DatasetError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.datasets.dataset import Dataset, SampleIndex, check_index, sample_numbers

__all__ = ["TextDataset"]


class TextDataset(Dataset):
    """Windows of a text, each with the symbols that follow.

    A sample is int64 ``[context]``, the numbers of successive symbols; its label is int64 ``[context]``, the number of
    the symbol behind each of them.

    Attributes:
        context: Number of symbols a window.
        stride: Distance of the beginnings of neighbouring windows.
        vocabulary: The characters, in the order of their numbers; ``None`` at the level of bytes.
        symbol_count: Number of symbols of the text.
        byte_count: Number of bytes of the text in UTF-8.

    Example:
        >>> dataset = TextDataset.from_text("abracadabra", context=4)
        >>> dataset.vocabulary, len(dataset), dataset.decode(dataset[0]["label"])
        (('a', 'b', 'c', 'd', 'r'), 2, 'brac')
    """

    def __init__(
        self,
        symbols: NDArray[Any],
        context: int,
        *,
        vocabulary: Sequence[str] | None = None,
        stride: int | None = None,
        input_node: str = "input",
        label_node: str = "label",
    ) -> None:
        """Cut a text into windows.

        Args:
            symbols: The numbers of the text's symbols, unsigned integers ``[n]``; they are not copied.
            context: Number of symbols a window.
            vocabulary: The character that each number stands for; ``None`` for bytes.
            stride: Distance of the beginnings of neighbouring windows; by default ``context``, so that each symbol is
                predicted once.
            input_node: Name of the network's input that the windows are for.
            label_node: Name of the network's input that the following symbols are for.

        Raises:
            DatasetError: An argument is not accepted, or the text is shorter than a window and one symbol.
        """
        super().__init__(input_node, label_node, 256 if vocabulary is None else len(vocabulary))
        for name, value in (("context", context), ("stride", 1 if stride is None else stride)):
            check_count(name, value, least=1, error=DatasetError)
        if symbols.ndim != 1 or symbols.dtype.kind != "u":
            raise DatasetError(
                f"Symbols were given as {symbols.dtype.name} of shape {symbols.shape}, not unsigned [n]."
            )
        if len(symbols) < context + 1:
            raise DatasetError(
                f"The text has {len(symbols)} symbols; a window of {context} and the symbol behind it need "
                f"{context + 1}. Use a shorter context or a longer text."
            )
        if symbols.max() >= (self.classes or 0):
            raise DatasetError(f"The text holds the symbol {symbols.max()}; the vocabulary has {self.classes}.")
        self.context = int(context)
        self.stride = int(context if stride is None else stride)
        self.vocabulary = None if vocabulary is None else tuple(vocabulary)
        self.symbol_count = len(symbols)
        self._symbols = symbols
        if self.vocabulary is None:
            self.byte_count = len(symbols)
        else:
            widths = np.array([len(character.encode()) for character in self.vocabulary], np.int64)
            self.byte_count = int(widths @ np.bincount(symbols, minlength=len(widths)))

    @classmethod
    def from_text(cls, text: str, context: int, **arguments: Any) -> TextDataset:
        """Return the data set of a text at the level of characters; see :meth:`__init__` for the arguments."""
        vocabulary = sorted(set(text))
        return cls(encode_characters(text, vocabulary), context, vocabulary=vocabulary, **arguments)

    def __len__(self) -> int:
        """Return the number of windows."""
        return (self.symbol_count - 1 - self.context) // self.stride + 1

    def __getitem__(self, index: SampleIndex) -> dict[str, NDArray[Any]]:
        """Return one window or several; see :meth:`Dataset.__getitem__`."""
        where = check_index(index, len(self))
        starts = sample_numbers(where, len(self)) * self.stride
        found = self._symbols[starts[:, np.newaxis] + np.arange(self.context + 1)].astype(np.int64)
        if isinstance(where, int):
            found = found[0]
        assert self.label_node is not None
        return {self.input_node: np.array(found[..., :-1]), self.label_node: np.array(found[..., 1:])}

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of a window, ``(context,)``."""
        return (self.context,)

    @property
    def dtype(self) -> str:
        """The dtype of windows, int64."""
        return "int64"

    @property
    def descriptors(self) -> dict[str, TensorDescriptor]:
        """Windows and following symbols, both int64 ``[batch, context]``."""
        assert self.label_node is not None
        both = TensorDescriptor("int64", ("batch", self.context))
        return {self.input_node: both, self.label_node: both}

    @property
    def bytes_per_symbol(self) -> float:
        """Mean number of UTF-8 bytes of this text's symbols; 1 at the level of bytes."""
        return self.byte_count / self.symbol_count

    def bits_per_byte(self, loss: float) -> float:
        r"""Return the bits a byte of the text for a mean cross-entropy in nats a symbol.

        .. math:: \frac{loss}{\ln 2 \cdot bytes\ per\ symbol}
        """
        return loss / math.log(2) / self.bytes_per_symbol

    def encode(self, text: str) -> NDArray[np.int64]:
        """Return the numbers of a text's symbols, int64.

        Raises:
            DatasetError: A character is not in the vocabulary.
        """
        if self.vocabulary is None:
            return np.frombuffer(text.encode(), np.uint8).astype(np.int64)
        return encode_characters(text, self.vocabulary).astype(np.int64)

    def decode(self, symbols: Iterable[int]) -> str:
        """Return the text that symbols stand for; bytes that are no UTF-8 become the replacement character.

        Raises:
            DatasetError: A number is not in the vocabulary.
        """
        numbers = [int(number) for number in symbols]
        wrong = [number for number in numbers if not 0 <= number < (self.classes or 0)]
        if wrong:
            raise DatasetError(f"There is no symbol {wrong[0]}; the vocabulary has {self.classes}.")
        if self.vocabulary is None:
            return bytes(numbers).decode("utf-8", "replace")
        return "".join(self.vocabulary[number] for number in numbers)


def encode_characters(text: str, vocabulary: Sequence[str]) -> NDArray[Any]:
    """Return the number in a sorted vocabulary of each character, in the smallest unsigned dtype.

    Raises:
        DatasetError: A character is not in the vocabulary.
    """
    points = np.frombuffer(text.encode("utf-32-le"), "<u4")
    known = np.array([ord(character) for character in vocabulary], "<u4")
    numbers = np.minimum(np.searchsorted(known, points), max(len(known) - 1, 0))
    wrong = np.flatnonzero(known[numbers] != points) if len(known) else np.arange(len(points))
    if wrong.size:
        raise DatasetError(f"The character {chr(points[wrong[0]])!r} is not in the vocabulary of {len(known)}.")
    return numbers.astype(np.min_scalar_type(max(len(known) - 1, 0)))
