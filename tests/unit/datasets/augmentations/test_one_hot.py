from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.augmentations.one_hot import OneHot


def test_class_numbers_become_probabilities() -> None:
    samples = np.zeros((3, 2))
    batch = {"input": samples, "label": np.array([2, 0, 1])}

    found = OneHot(4)(batch)

    assert found["input"] is samples
    assert found["label"].dtype == np.float32
    np.testing.assert_array_equal(found["label"], np.eye(4)[[2, 0, 1]])
    np.testing.assert_array_equal(batch["label"], [2, 0, 1])  # what was given stays as it is


@pytest.mark.parametrize("labels", [[0, 3], [-1, 0], [[0], [1]], [0.0, 1.0]])
def test_labels_that_are_no_classes(labels: Any) -> None:
    with pytest.raises(DatasetError, match="OneHot with 3 classes needs labels"):
        OneHot(3)({"input": np.zeros((2, 2)), "label": np.array(labels)})


@pytest.mark.parametrize("node", ["other", None])
def test_no_labels(node: str | None) -> None:
    augmentation = OneHot(3)
    augmentation.set_dataset_nodes("input", node)
    with pytest.raises(DatasetError, match="OneHot changes the labels"):
        augmentation({"input": np.zeros((2, 2))})


@pytest.mark.parametrize("classes", [0, -1, 1.5, "3", None, True, 2**31])
def test_numbers_of_classes_that_are_not_accepted(classes: Any) -> None:
    with pytest.raises(DatasetError, match="classes was given as"):
        OneHot(classes)
