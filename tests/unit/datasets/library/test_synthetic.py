from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import DatasetError
from deep500.datasets.loading import load_dataset


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.one_of(st.none(), st.integers(1, 12)),
    st.sampled_from(["float32", "float64"]),
    st.lists(st.integers(-30, 29), max_size=12),
)
def test_a_sample_depends_on_its_number_alone(shape: list[int], classes: Any, dtype: str, numbers: list[int]) -> None:
    train, _ = load_dataset("synthetic", shape=shape, classes=classes, dtype=dtype, samples=30)
    longer, _ = load_dataset("synthetic", shape=shape, classes=classes, dtype=dtype, samples=10**12)

    batch = train[numbers]

    assert batch["input"].shape == (len(numbers), *shape)
    for place, number in enumerate(numbers):
        for other in (train[number], longer[number % 30]):
            np.testing.assert_array_equal(batch["input"][place], other["input"])
            np.testing.assert_array_equal(batch["label"][place], other["label"])


def test_the_test_set_follows_the_training_set() -> None:
    train, test = load_dataset("synthetic", shape=4, samples=30, test_samples=10)
    both, _ = load_dataset("synthetic", shape=4, samples=40, test_samples=10)

    np.testing.assert_array_equal(both[30:]["input"], test[:]["input"])
    np.testing.assert_array_equal(both[:30]["input"], train[:]["input"])


def test_moments_classes_and_that_they_can_be_learned() -> None:
    train, test = load_dataset("synthetic", shape=(3, 8, 8), samples=4000, test_samples=1000)
    samples, labels = (train[:][name] for name in ("input", "label"))

    assert abs(samples.mean()) < 0.03
    assert abs(samples.var() - 1) < 0.02
    assert np.bincount(labels).min() > 300
    flat = samples.reshape(4000, -1)
    means = np.stack([flat[labels == c].mean(axis=0) for c in range(10)])
    predicted = (test[:]["input"].reshape(1000, -1) @ means.T - (means**2).sum(axis=1) / 2).argmax(axis=1)
    assert (predicted == test[:]["label"]).mean() > 0.95


def test_targets_are_a_linear_function() -> None:
    train, test = load_dataset("synthetic", shape=20, classes=None, samples=500)
    weights, *_ = np.linalg.lstsq(train[:]["input"].astype(np.float64), train[:]["label"], rcond=None)

    np.testing.assert_allclose(test[:]["input"] @ weights, test[:]["label"], atol=1e-5)
    assert abs(train[:]["label"].var() - 1) < 0.2


def test_any_number_costs_nothing() -> None:
    train, test = load_dataset("synthetic", samples=10**15, test_samples=10**15)

    assert train[10**15 - 1]["input"].shape == test[-1]["input"].shape == (3, 32, 32)


def test_the_seed_counts() -> None:
    one, other = (load_dataset("synthetic", seed=seed)[0][0]["input"] for seed in (0, 1))

    assert not np.array_equal(one, other)


def test_values_are_fixed() -> None:
    """A stored result: other bits would make all runs on this data set incomparable."""
    train, _ = load_dataset("synthetic", shape=3, samples=10)

    assert train[:5]["label"].tolist() == EXPECTED_LABELS
    np.testing.assert_array_equal(train[4]["input"], np.array(EXPECTED_SAMPLE, np.float32))


EXPECTED_LABELS = [2, 4, 1, 5, 6]
EXPECTED_SAMPLE = [1.5182983875274658, -0.21057945489883423, 0.2610597610473633]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": ()}, "shape"),
        ({"shape": (3, 0)}, "shape"),
        ({"shape": "abc"}, "shape"),
        ({"samples": 0}, "samples"),
        ({"test_samples": 1.5}, "test_samples"),
        ({"samples": 2**63}, "less than"),
        ({"classes": 0}, "classes"),
        ({"dtype": "int8"}, "dtype"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        load_dataset("synthetic", **arguments)
