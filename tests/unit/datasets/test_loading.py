from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import DatasetError, PluginError, UnknownNameError
from deep500.datasets.loading import DATASETS, load_dataset


def test_names_are_those_of_the_files() -> None:
    assert {"cifar10", "digits"} <= set(DATASETS.names())


def test_nodes_are_passed_on() -> None:
    train, test = load_dataset("digits", "image", "digit", test_samples=10)

    assert list(train[0]) == ["image", "digit"]
    assert len(test) == 10


def test_unknown_names_have_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'digits'"):
        load_dataset("digit")
    with pytest.raises(DatasetError, match="Did you mean 'test_samples'"):
        load_dataset("digits", test_sample=3)
    with pytest.raises(DatasetError, match="Accepted: test_samples, split_seed"):
        load_dataset("digits", folder=".")


def test_plug_in_that_returns_something_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(input_node: str, label_node: str) -> Any:
        return [1, 2]

    monkeypatch.setitem(DATASETS._loaded, "wrong", wrong)

    with pytest.raises(PluginError, match="'wrong' must return"):
        load_dataset("wrong")
