from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError
from tests.unit.training.support import LinearExecutor


def test_snapshot_is_a_copy_and_comes_back() -> None:
    executor, other = LinearExecutor(), LinearExecutor()
    snapshot = executor.state()
    before = executor.network.weights_hash()
    for name in executor.tensors:
        executor.tensors[name] += 1
    other.tensors = {name: value + 2 for name, value in other.tensors.items()}
    assert executor.network.weights_hash() != before

    for target in (executor, other):
        target.restore(snapshot)
        assert target.network.weights_hash() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("parameters"), "holds no parameters"),
        (lambda s: s.pop("random"), "holds no random streams"),
        (lambda s: s["parameters"].popitem(), "of another network: 1 of the parameters"),
        (lambda s: s["parameters"].update(more=np.zeros(1)), "'more', which is in the checkpoint"),
        (lambda s: s["states"].update(mean=np.zeros(1)), "'mean', which is in the checkpoint"),
        (lambda s: s["parameters"].update({next(iter(s["parameters"])): np.zeros(3)}), "of another network"),
        (lambda s: s["parameters"].update({next(iter(s["parameters"])): np.zeros((3, 4), np.float32)}), "float32"),
    ],
)
def test_snapshot_of_something_else_changes_nothing(change: Any, message: str) -> None:
    executor = LinearExecutor()
    snapshot = copy.deepcopy(executor.state())
    before = executor.network.weights_hash()
    snapshot["parameters"] = {name: value + 1 for name, value in snapshot["parameters"].items()}
    change(snapshot)
    with pytest.raises(CheckpointError, match=message):
        executor.restore(snapshot)

    assert executor.network.weights_hash() == before
