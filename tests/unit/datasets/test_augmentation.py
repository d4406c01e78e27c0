from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import DatasetError
from deep500.datasets.augmentation import AUGMENTATIONS, Augmentation, RandomAugmentation, rounded_to
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.training.samplers.ordered import OrderedSampler
from tests.unit.datasets.augmentations.support import make_images, stream

#: Arguments of each augmentation, so that it changes images [N, 3, 6, 5]. A new one needs a line here, and tests of its
#: own in tests/unit/datasets/augmentations.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "colour_jitter": (0.5, 0.5, 0.5, 0.2),
    "cutout": (3,),
    "horizontal_flip": (),
    "mixup": (0.7, 4),
    "normalise": ((0.1, 0.2, 0.3), 0.5),
    "one_hot": (4,),
    "random_crop": (5, 2),
    "random_resized_crop": (4,),
    "resize": (4,),
}

#: What changes labels and leaves samples, which need not be images, as they are.
OF_LABELS = {"one_hot"}
OF_IMAGES = sorted(set(AUGMENTATIONS.names()) - OF_LABELS)


def made(name: str) -> Augmentation:
    assert name in ARGUMENTS, f"add the arguments of {name!r} to {__name__}.ARGUMENTS"
    return AUGMENTATIONS.get(name)(*ARGUMENTS[name])  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", AUGMENTATIONS.names())
def test_the_generator_alone_decides(name: str) -> None:
    augmentation = made(name)
    batch = {"input": make_images((8, 3, 6, 5)), "label": np.arange(8) % 4}

    def run(augmentation: Any, seed: int) -> dict[str, Any]:
        if isinstance(augmentation, RandomAugmentation):
            augmentation.set_random_stream(stream(seed))
        return augmentation(batch)  # type: ignore[no-any-return]

    first, other = run(augmentation, 1), run(augmentation, 2)
    changed = "label" if name in OF_LABELS else "input"
    assert not np.array_equal(first[changed], batch[changed])
    assert np.array_equal(first["input"], other["input"]) is not isinstance(augmentation, RandomAugmentation)
    for copied in (augmentation, copy.deepcopy(augmentation), pickle.loads(pickle.dumps(augmentation))):
        for node, values in run(copied, 1).items():
            np.testing.assert_array_equal(values, first[node])


@pytest.mark.parametrize("name", AUGMENTATIONS.names())
def test_images_are_found_by_the_data_sets_names(name: str) -> None:
    dataset = NumpyDataset(make_images((4, 3, 6, 5)), "picture", [0, 1, 2, 3], "kind")
    batch = next(OrderedSampler(dataset, 4, transformations=[made(name)]))
    assert sorted(batch) == ["kind", "picture"]
    changed = "kind" if name in OF_LABELS else "picture"
    assert not np.array_equal(batch[changed], dataset[:4][changed])


@pytest.mark.parametrize("name", OF_IMAGES)
@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 6, 5), np.float32), r"of the shape \[2, 6, 5\]; accepted are images \[N, C, H, W\]"),
        (np.zeros((2, 3, 0, 5), np.float32), "accepted are images"),
        (np.zeros((2, 3, 6, 5), np.int64), "was given int64"),
    ],
)
def test_what_is_no_image_is_refused(name: str, images: Any, message: str) -> None:
    augmentation = made(name)
    if isinstance(augmentation, RandomAugmentation):
        augmentation.set_random_stream(stream())
    with pytest.raises(DatasetError, match=message):
        augmentation({"input": images, "label": np.zeros(2)})
    with pytest.raises(DatasetError, match="the minibatch has label"):
        augmentation({"label": np.zeros(2)})


@pytest.mark.parametrize("name", AUGMENTATIONS.names())
def test_random_numbers_must_be_given(name: str) -> None:
    augmentation = made(name)
    if isinstance(augmentation, RandomAugmentation):
        with pytest.raises(DatasetError, match="Pass it to a sampler"):
            augmentation({"input": make_images((4, 3, 6, 5)), "label": np.arange(4)})


def test_bytes_are_rounded_half_to_even_and_kept_in_their_range() -> None:
    values = np.array([-3.0, 0.5, 1.5, 2.4999, 254.5, 300.0])
    assert rounded_to(np.dtype(np.uint8), values).tolist() == [0, 0, 2, 2, 254, 255]
