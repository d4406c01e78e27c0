from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import kstest

from deep500.core.errors import DatasetError
from deep500.datasets.augmentations.mixup import Mixup
from deep500.datasets.draws import uniform
from deep500.datasets.shuffling import shuffled_order
from tests.unit.datasets.augmentations.support import DTYPES, SHAPES, make_images, stream


def mixed(augmentation: Mixup, batch: dict[str, Any], seed: int = 1) -> dict[str, Any]:
    augmentation.set_random_stream(stream(seed))
    return augmentation(batch)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_sample_and_label_is_mixed_with_another(shape: tuple[int, ...], dtype: Any) -> None:
    images, classes = make_images(shape, dtype), np.arange(shape[0]) % 3

    found = mixed(Mixup(0.4, classes=3), {"input": images, "label": classes})

    generator = stream()
    share = betaincinv(0.4, 0.4, uniform(generator, 1)[0])
    other = shuffled_order(generator, shape[0])
    assert found["input"].dtype == dtype
    assert (found["label"].dtype, found["label"].shape) == (np.float32, (shape[0], 3))
    for n in range(shape[0]):
        first, second = images[n].astype(np.float64), images[other[n]].astype(np.float64)
        tolerance = {"uint8": 0.5001, "float16": 1e-3, "bfloat16": 4e-3, "float32": 1e-6, "float64": 1e-14}
        expected = share * first + (1 - share) * second
        np.testing.assert_allclose(found["input"][n].astype(float), expected, atol=tolerance[np.dtype(dtype).name])
        label = np.zeros(3)
        label[classes[n]] += share
        label[classes[other[n]]] += 1 - share
        np.testing.assert_allclose(found["label"][n], label, atol=1e-6)


def test_regression_targets_are_mixed_in_their_dtype() -> None:
    targets = np.arange(6.0).reshape(3, 2)
    found = mixed(Mixup(1.0), {"input": make_images((3, 1, 2, 2)), "label": targets})["label"]
    assert found.dtype == np.float64
    assert not np.array_equal(found, targets)
    np.testing.assert_allclose(found.sum(axis=0), targets.sum(axis=0))  # each sample is someone's other


def test_images_without_labels() -> None:
    augmentation = Mixup()
    augmentation.set_dataset_nodes("input", None)
    assert list(mixed(augmentation, {"input": make_images((3, 1, 2, 2))})) == ["input"]


def test_shares_follow_the_beta_distribution() -> None:
    batch = {"input": np.array([0.0, 1.0]).reshape(2, 1, 1, 1), "label": np.zeros((2, 1))}
    shares = [1 - found for seed in range(1500) if (found := mixed(Mixup(0.5), batch, seed)["input"][0, 0, 0, 0])]
    assert 600 < len(shares) < 900  # the others were mixed with themselves
    assert kstest(shares, "beta", (0.5, 0.5)).pvalue > 1e-6  # the probability that a right law fails


def test_class_numbers_are_refused_with_what_to_do() -> None:
    with pytest.raises(DatasetError, match=r"SoftmaxCrossEntropyLoss needs them.*Mixup\(classes"):
        mixed(Mixup(), {"input": make_images((2, 1, 2, 2)), "label": np.array([0, 1])})


@pytest.mark.parametrize("labels", [[0, 3], [-1, 0], [[0], [1]]])
def test_labels_that_are_no_classes(labels: Any) -> None:
    with pytest.raises(DatasetError, match="needs labels"):
        mixed(Mixup(classes=3), {"input": make_images((2, 1, 2, 2)), "label": np.array(labels)})


@pytest.mark.parametrize("arguments", [(0,), (-1,), ("much",), (0.2, 0), (0.2, 1.5)])
def test_arguments_that_are_not_accepted(arguments: Any) -> None:
    with pytest.raises(DatasetError, match="accepted are"):
        Mixup(*arguments)
