from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError, InvalidInputError
from deep500.datasets.library.digits import digits


def test_all_images_are_in_one_of_the_two_sets() -> None:
    from sklearn.datasets import load_digits

    train, test = digits()
    raw = load_digits()

    assert (len(train), len(test)) == (1437, 360)
    images = np.concatenate([train[:]["input"], test[:]["input"]])
    labels = np.concatenate([train[:]["label"], test[:]["label"]])
    served = sorted((image.tobytes(), label) for image, label in zip(images, labels, strict=True))
    expected = sorted(
        ((image / 16).astype(np.float32).tobytes(), label) for image, label in zip(raw.images, raw.target, strict=True)
    )
    assert served == expected


def test_what_the_samples_are() -> None:
    train, test = digits("x", "y")

    for part in (train, test):
        batch = part[:5]
        assert (batch["x"].dtype, batch["x"].shape) == (np.float32, (5, 1, 8, 8))
        assert (batch["y"].dtype, batch["y"].shape) == (np.int64, (5,))
        assert (part.data.min(), part.data.max()) == (0.0, 1.0)
        assert (part.classes, part.loss) == (10, "SoftmaxCrossEntropyLoss")


def test_split_is_the_same_everywhere_and_for_ever() -> None:
    assert (
        hashlib.sha256(digits()[1].data.astype("<f4").tobytes()).hexdigest()
        == "6eefd760f64cc0886b04734ba8e350bf12a3e19d054e078a15d0497bcd42497c"
    )


def test_split_has_a_seed_of_its_own() -> None:
    assert not np.array_equal(digits()[1].data, digits(split_seed=1)[1].data)
    np.testing.assert_array_equal(digits(split_seed=1)[1].data, digits(split_seed=1)[1].data)


@pytest.mark.parametrize("test_samples", [0, 1797, -1, 2.0, True, "360"])
def test_sizes_that_leave_a_set_empty(test_samples: Any) -> None:
    with pytest.raises(DatasetError, match="1 to 1796"):
        digits(test_samples=test_samples)


def test_wrong_seed() -> None:
    with pytest.raises(InvalidInputError, match="seed"):
        digits(split_seed=-1)
