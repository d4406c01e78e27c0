from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.loading import load_dataset


@pytest.mark.parametrize("level", ["byte", "character"])
def test_a_file_is_split_by_position(tmp_path: Path, level: str) -> None:
    content = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.\r\n" * 20
    path = tmp_path / "text"
    path.write_bytes(content.encode())
    symbols: Any = content if level == "character" else content.encode()

    train, test = load_dataset("text", path=path, level=level, context=7, validation_fraction=0.25)

    assert isinstance(train, type(test))
    split = len(symbols) - round(len(symbols) / 4)
    assert (train.symbol_count, test.symbol_count) == (split, len(symbols) - split)  # type: ignore[attr-defined]
    assert train.byte_count + test.byte_count == len(content.encode())  # type: ignore[attr-defined]
    known = sorted(set(content)) if level == "character" else range(256)
    last = train[-1]["label"]
    end = (len(train) - 1) * 7 + 8
    assert [known[number] for number in last] == list(symbols[end - 7 : end])
    assert [known[number] for number in test[0]["input"]] == list(symbols[split : split + 7])


def test_the_default_is_the_standard_library_s_own() -> None:
    from pydoc_data.topics import topics

    train, test = load_dataset("text", context=64)

    whole = np.concatenate([train[:]["input"].reshape(-1), test[:]["input"].reshape(-1)])
    assert len(whole) > 300_000
    assert bytes(whole[:40].tolist()).decode() == topics[min(topics)].strip()[:40]
    assert train.classes == 256


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": "word"}, "'byte' and 'character'"),
        ({"validation_fraction": 0}, "validation_fraction"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"validation_fraction": True}, "validation_fraction"),
        ({"path": "no/such"}, "no/such cannot be read"),
        ({"path": 3}, "3 cannot be read"),
        ({"context": 10**9}, "shorter context"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        load_dataset("text", **arguments)


def test_what_is_no_utf8(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc\xff" * 500)

    with pytest.raises(DatasetError, match=r"byte 3 is 0xff.*level='byte'"):
        load_dataset("text", path=tmp_path / "a", level="character")
    assert load_dataset("text", path=tmp_path / "a", context=3)[0][0]["label"].tolist() == [98, 99, 255]
