from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.metrics.dataset_bias import DatasetBias
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.validation.sampler_check import test_sampler as check_sampler
from tests.unit.training.support import clusters


def test_published_use() -> None:
    [counts] = check_sampler(ShuffleSampler(clusters(30), 10), metrics=[DatasetBias(3, "label", reruns=6)])

    assert counts == [20, 20, 20]
    assert float(counts) == 0.0


def test_bias_is_the_total_variation_from_equal_shares() -> None:
    metric = DatasetBias(4)
    metric.end({"label": np.array([[0], [0], [1], [3]])})

    assert metric.measure(None, None) == [2, 1, 0, 1]
    assert float(metric.measure(None, None)) == 0.25
    assert metric.measure_summary(None, None) == "0.25 (drawn: 2, 1, 0, 1)"
    assert metric.fresh().measure(None, None) == [0, 0, 0, 0]


def test_labels_that_are_no_classes_are_refused() -> None:
    metric = DatasetBias(2, "label")
    for labels in ([2], [-1], [0.5]):
        with pytest.raises(TrainingError, match="classes 0 to 1"):
            metric.end({"label": np.array(labels)})
    with pytest.raises(TrainingError, match="needs minibatches with the labels 'label'; received x"):
        metric.end({"x": np.zeros(1)})
    with pytest.raises(TrainingError, match="num_classes"):
        DatasetBias(0)
