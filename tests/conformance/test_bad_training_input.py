"""What goes wrong around a training ends in one clear error, and nothing is lost."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError, Deep500Error, RecipeError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.frameworks import FRAMEWORKS
from deep500.recipe.recipe import Recipe
from deep500.recipe.runner import execute_recipe
from deep500.training.checkpoints import writer as writer_module
from deep500.training.checkpoints.loading import load_latest
from deep500.training.metrics.test_accuracy import TestAccuracy
from tests.unit.recipe.support import small_data, small_parts


def execute(options: dict[str, Any] | None = None, **changes: Any) -> Any:
    return execute_recipe(Recipe(*small_parts(**changes), [(TestAccuracy(), 0.0)]), **(options or {}))


def one_line(error: BaseException) -> str:
    assert isinstance(error, Deep500Error)
    assert "\n" not in str(error).strip()
    return str(error)


def with_nan(*, allowed: bool) -> tuple[NumpyDataset, NumpyDataset]:
    train, test = small_data()
    data = np.array(train.data)
    data[17, 0, 1, 1] = np.nan
    return NumpyDataset(data, "input", train.labels, "label", allow_nan=allowed), test


def test_nan_in_data_is_refused_where_the_data_are_made() -> None:
    with pytest.raises(DatasetError, match="NaN in sample 17") as caught:
        with_nan(allowed=False)
    one_line(caught.value)


@pytest.mark.parametrize("framework", FRAMEWORKS.names())
def test_nan_in_data_that_accept_it_is_named_in_the_verdict(framework: str) -> None:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    result = execute(dataset=with_nan(allowed=True), executor=framework)

    assert not result.passed
    # TensorFlow's ReLU makes 0 of NaN, so that only the parameters tell.
    assert result.failure.startswith("The training diverged: the ")
    assert "sample 17 of the data set has 'input' not finite" in result.failure


@pytest.mark.parametrize("framework", FRAMEWORKS.names())
def test_label_without_a_score(framework: str) -> None:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    train, test = small_data()
    labels = np.array(train.labels)
    labels[30] = 5
    data = NumpyDataset(train.data, "input", labels, "label"), test
    with pytest.raises(RecipeError, match=r"has 6 classes, labels 0 to 5, .* has 3 scores a sample") as caught:
        execute(dataset=data, model_kwargs={"classes": 3}, executor=framework)
    one_line(caught.value)
    with pytest.raises(DatasetError, match="label of sample 30 is -1") as caught_class:
        NumpyDataset(train.data, "input", np.where(labels == 5, -1, labels), "label", 3)
    one_line(caught_class.value)


def test_batch_larger_than_the_data() -> None:
    with pytest.raises(Deep500Error, match="batch_size is 100 and the data set has 48 samples") as caught:
        execute(batch_size=100, train_sampler="shuffle", train_sampler_kwargs={"drop_last_batch": True})
    one_line(caught.value)


def test_unknown_schedule_key() -> None:
    pytest.importorskip("deep500.training.events.schedule")
    with pytest.raises(RecipeError, match=r"unknown key 'learning_rat'. Did you mean 'learning_rate'\?") as caught:
        execute(schedule={"learning_rat": {"name": "cosine"}})
    one_line(caught.value)
    with pytest.raises(Deep500Error, match="cosin"):
        execute(schedule={"learning_rate": {"name": "cosin"}})
    with pytest.raises(RecipeError, match="accepted are 'step' and 'epoch'"):
        execute(schedule={"learning_rate": {"name": "cosine", "per": "week"}})


def test_full_disk_while_a_checkpoint_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = writer_module._write_file
    calls: list[str] = []

    def filling(path: Path, content: bytes) -> None:
        calls.append(path.name)
        if len(calls) > 3:
            path.write_bytes(content[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        original(path, content)

    monkeypatch.setattr(writer_module, "_write_file", filling)
    result = execute({"checkpoint": tmp_path / "c", "checkpoint_every": 4}, epochs=3)

    assert result.passed
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["step-000000004"]
    monkeypatch.undo()
    assert load_latest(tmp_path / "c").step == 4
    again = execute({"resume": tmp_path / "c", "checkpoint_every": 4}, epochs=3)
    assert again.metrics == result.metrics
