from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import DatasetError
from deep500.datasets.text_dataset import TextDataset


@given(st.text(min_size=2, max_size=60), st.data())
def test_windows_and_what_follows(text: str, data: st.DataObject) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    context = data.draw(st.integers(1, len(text) - 1))
    stride = data.draw(st.integers(1, 70))

    dataset = TextDataset.from_text(text, context, stride=stride)

    starts = range(0, len(text) - context, stride)
    assert len(dataset) == len(starts)
    for number, start in enumerate(starts):
        sample = dataset[number]
        assert dataset.decode(sample["input"]) == text[start : start + context]
        assert dataset.decode(sample["label"]) == text[start + 1 : start + context + 1]
    assert dataset.classes == len(set(text))
    assert dataset.byte_count == len(text.encode())
    assert dataset.decode(dataset.encode(text)) == text


def test_bytes() -> None:
    content = "naïve".encode()
    dataset = TextDataset(np.frombuffer(content, np.uint8), 3)

    assert (dataset.classes, dataset.vocabulary, dataset.bytes_per_symbol) == (256, None, 1.0)
    assert dataset.decode(dataset.encode("naïve")) == "naïve"
    assert dataset.decode(dataset[0]["label"]) == "aï"
    assert dataset.decode([0xC3]) == "\N{REPLACEMENT CHARACTER}"


def test_bits_per_byte() -> None:
    dataset = TextDataset.from_text("ää", 1)

    assert dataset.bytes_per_symbol == 2
    assert dataset.bits_per_byte(math.log(2)) == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"context": 0}, "context"),
        ({"context": 2.0}, "context"),
        ({"context": 2, "stride": 0}, "stride"),
        ({"context": 5}, "5 symbols; a window of 5 and the symbol behind it need 6"),
        ({"context": 2, "vocabulary": ("a", "b")}, "holds the symbol 2"),
        ({"symbols": np.zeros(4), "context": 2}, "not unsigned"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        TextDataset(**{"symbols": np.array([0, 1, 2, 0, 1], np.uint8), **arguments})


def test_symbols_that_are_not_there() -> None:
    dataset = TextDataset.from_text("abc", 1)

    with pytest.raises(DatasetError, match="'d' is not in the vocabulary of 3"):
        dataset.encode("abd")
    with pytest.raises(DatasetError, match="no symbol 3"):
        dataset.decode([3])
