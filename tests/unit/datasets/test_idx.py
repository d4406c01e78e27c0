from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deep500.core.errors import DatasetError
from deep500.datasets._idx import IDX_TYPES, read_idx
from tests.dataset_files import idx_bytes, write_idx

ARRAYS = st.sampled_from(sorted(IDX_TYPES.values())).flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
)


@given(ARRAYS, st.booleans())
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, array: Any, compressed: bool) -> None:
    path = write_idx(tmp_path_factory.mktemp("idx"), "a", array, compressed)

    read = read_idx(path, array.dtype.name, array.ndim)

    assert read.shape == array.shape
    assert read.tobytes() == array.tobytes()


@given(ARRAYS, st.booleans(), st.data())
def test_every_truncation_is_found(
    tmp_path_factory: pytest.TempPathFactory, array: Any, compressed: bool, data: st.DataObject
) -> None:
    path = write_idx(tmp_path_factory.mktemp("idx"), "a", array, compressed)
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])

    with pytest.raises(DatasetError):
        read_idx(path, array.dtype.name, array.ndim)


def test_a_file_that_is_not_compressed_is_mapped(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)

    assert isinstance(read_idx(write_idx(tmp_path, "a", array, False), "uint8", 3), np.memmap)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx_bytes(np.zeros((2, 3), np.uint8)), "instead of 00 00 08 03"),
        (idx_bytes(np.zeros((2, 3, 4), np.int8)), "begins with 00 00 09 03"),
        (b"", "begins with nothing"),
        (b"<html>404", "begins with 3c 68 74 6d"),
        (idx_bytes(np.zeros((2, 3, 4), np.uint8))[:9], "ends within its header"),
        (idx_bytes(np.zeros((2, 3, 4), np.uint8))[:-1], "truncated: it holds 23 bytes of elements instead of the 24"),
        (idx_bytes(np.zeros((2, 3, 4), np.uint8)) + b"x", "no such file: it holds"),
        (bytes((0, 0, 8, 3)) + b"\xff" * 12, "truncated"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes, message: str, compressed: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(content) if compressed else content)

    with pytest.raises(DatasetError, match=message) as caught:
        read_idx(path, "uint8", 3)
    assert str(path) in str(caught.value)


def test_a_damaged_gzip_file(tmp_path: Path) -> None:
    path = write_idx(tmp_path, "a", np.zeros((2, 3, 4), np.uint8))
    content = bytearray(path.read_bytes())
    content[-8] ^= 1  # the sum
    path.write_bytes(content)

    with pytest.raises(DatasetError, match="cannot be read"):
        read_idx(path, "uint8", 3)
