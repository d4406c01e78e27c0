from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.validation._batches import batches_of
from tests.unit.training.support import clusters


def test_sampler_is_gone_through_and_stays_where_it_was() -> None:
    sampler = ShuffleSampler(clusters(30), 10, seed=3)
    next(sampler)
    state = sampler.state()
    found = batches_of(sampler, 5)

    assert sampler.state() == state
    again = ShuffleSampler(clusters(30), 10, seed=3)
    next(again)
    for batch in found[:2]:
        np.testing.assert_array_equal(batch["input"], next(again)["input"])
    again.reset()
    np.testing.assert_array_equal(found[2]["input"], next(again)["input"])


def test_every_form_is_taken() -> None:
    one = {"x": np.zeros((2, 3))}
    labels = {"label": np.zeros(2)}

    assert batches_of(one, 2) == [one, one]
    assert batches_of((one, labels), 1) == [{**one, **labels}]
    assert [b["n"] for b in batches_of([{"n": 0}, {"n": 1}], 5)] == [0, 1, 0, 1, 0]
    assert len(batches_of(clusters(5), 3, batch_size=32)) == 3


@pytest.mark.parametrize("data", [None, "digits", [], [1], 3])
def test_anything_else_is_refused(data: object) -> None:
    with pytest.raises(TrainingError, match="accepted are a Sampler"):
        batches_of(data, 1)
