from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from deep500.core.errors import DatasetError
from deep500.datasets.library._table import standardized
from deep500.datasets.loading import load_dataset


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes"])
def test_split_and_standardised_by_the_training_part(name: str) -> None:
    raw: Any = load_breast_cancer() if name == "breast_cancer" else load_diabetes(scaled=False)
    train, test = load_dataset(name)

    features = np.concatenate([test[:]["input"], train[:]["input"]]).astype(np.float64)
    assert len(features) == len(raw.data)
    np.testing.assert_allclose(train[:]["input"].mean(axis=0, dtype=np.float64), 0, atol=1e-6)
    np.testing.assert_allclose(train[:]["input"].std(axis=0, dtype=np.float64), 1, atol=1e-6)
    assert abs(test[:]["input"].mean(axis=0)).max() > 1e-3, "the test set was standardised by itself"
    # Each row is one of scikit-learn's, with its label.
    order = np.concatenate([test[:]["label"], train[:]["label"]]).reshape(-1)
    assert sorted(order.tolist()) == sorted(raw.target.tolist())
    scale = raw.data.std(axis=0) / features.std(axis=0)
    back = features * scale + (raw.data.mean(axis=0) - features.mean(axis=0) * scale)
    nearest = np.array([np.abs((raw.data - row) / raw.data.std(axis=0)).sum(axis=1).argmin() for row in back[:50]])
    assert len(set(nearest.tolist())) == 50
    np.testing.assert_array_equal(raw.target[nearest], order[:50])


def test_regression_labels() -> None:
    train, test = load_dataset("diabetes")
    standard, other = load_dataset("diabetes", standardize_labels=True)

    assert train[0]["label"].shape == (1,)
    assert (train.loss, len(train), len(test)) == ("MeanSquaredError", 354, 88)
    np.testing.assert_allclose(standard[:]["label"].std(dtype=np.float64), 1, atol=1e-6)
    mean, deviation = train[:]["label"].mean(dtype=np.float64), train[:]["label"].std(dtype=np.float64)
    np.testing.assert_allclose(other[:]["label"], (test[:]["label"] - mean) / deviation, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "digits"])
def test_the_split_is_its_seed_s(name: str) -> None:
    first, again, other = (load_dataset(name, split_seed=seed)[1][:]["input"] for seed in (0, 0, 1))

    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    for wrong in (0, 10**6, 2.0, True):
        with pytest.raises(DatasetError, match="test_samples"):
            load_dataset(name, test_samples=wrong)
    assert len(load_dataset(name, test_samples=7)[1]) == 7


def test_a_column_that_never_changes() -> None:
    train, test = standardized(np.ones((4, 1)), np.full((2, 1), 3.0))

    assert train.tolist() == [[0]] * 4
    assert test.tolist() == [[2]] * 2
