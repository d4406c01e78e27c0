from __future__ import annotations

import numpy as np

from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.training.samplers.ordered import OrderedSampler


def test_every_epoch_is_in_order_and_complete_by_default() -> None:
    sampler = OrderedSampler(NumpyDataset(np.arange(5), "x"), 2)

    for _ in range(2):
        assert [batch["x"].tolist() for batch in sampler] == [[0, 1], [2, 3], [4]]
        sampler.reset()


def test_third_argument_is_that_of_the_published_package() -> None:
    assert len(OrderedSampler(NumpyDataset(np.arange(5), "x"), 2, True)) == 2
