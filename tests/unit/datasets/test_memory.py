from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import DatasetError
from deep500.datasets._memory import LazyArrays, mapped_part, reopened
from deep500.datasets.numpy_dataset import NumpyDataset


@given(st.integers(0, 9000), st.slices(20), st.slices(6), st.sampled_from(["<f4", ">i2", "u1"]), st.booleans())
def test_every_view_of_a_map_is_found_again(
    tmp_path_factory: pytest.TempPathFactory, offset: int, rows: Any, columns: Any, dtype: str, transposed: bool
) -> None:
    path = tmp_path_factory.mktemp("map") / "data"
    values = np.arange(120).reshape(20, 6).astype(dtype)
    path.write_bytes(b"x" * offset + values.tobytes() + b"more")
    view = np.memmap(path, dtype, "r", offset, (20, 6))[rows, columns]
    view = view.T if transposed else view

    part = mapped_part(view)

    if part is None:
        assert not view.size or any(stride < 0 for stride in view.strides)
        return
    again = reopened(part)
    np.testing.assert_array_equal(again, view)
    assert again.dtype == view.dtype
    assert mapped_part(again) == part


def test_what_counts_as_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(4))

    assert mapped_part(np.ones(3)) is None
    assert mapped_part(np.load(tmp_path / "a.npy", mmap_mode="c")) is None
    assert mapped_part(np.load(tmp_path / "a.npy", mmap_mode="r")) is not None
    assert mapped_part(np.load(tmp_path / "a.npy", mmap_mode="r") * 2) is None


def test_mapped_data_sets_are_pickled_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.random.default_rng(0).random((1000, 50)))
    dataset = NumpyDataset(np.load(tmp_path / "a.npy", mmap_mode="r"), labels=np.arange(1000) % 3)

    content = pickle.dumps(dataset)

    assert len(content) < 20_000
    again = pickle.loads(content)
    assert isinstance(again.data, np.memmap)
    np.testing.assert_array_equal(again[::7]["input"], dataset[::7]["input"])


def test_nan_is_found_where_it_lies(tmp_path: Path) -> None:
    data = np.zeros((5, 2, 3), np.float32)
    data[3, 1, 2] = np.nan
    with pytest.raises(DatasetError, match=r"is NaN in sample 3, element \(1, 2\); .*allow_nan"):
        NumpyDataset(data)
    assert np.isnan(NumpyDataset(data, allow_nan=True)[3]["input"][1, 2])
    np.save(tmp_path / "a.npy", data)
    mapped = NumpyDataset(np.load(tmp_path / "a.npy", mmap_mode="r"))
    assert not mapped[:3]["input"].any()
    with pytest.raises(DatasetError, match="is NaN in sample 3"):
        mapped[[0, 3]]


def load(count: int) -> tuple[Any, ...]:
    return (np.arange(count),)


def test_arrays_are_read_when_they_are_asked_for() -> None:
    import functools

    lazy = LazyArrays(functools.partial(load, 1000), (np.arange(5),))

    assert len(lazy.get()[0]) == 5
    content = pickle.dumps(lazy)
    assert len(content) < 300
    again = pickle.loads(content)
    assert len(again.get()[0]) == 1000
    assert again.get() is again.get()
