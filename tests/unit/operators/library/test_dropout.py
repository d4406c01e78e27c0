"""What Dropout draws; the cases without chance are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.dropout import Dropout

TRUE = np.array(True)


def test_elements_are_dropped_by_the_ratio_and_the_others_scaled() -> None:
    x = np.full((400, 500), 3.0, np.float32)

    y, mask = Dropout().forward([x, np.array(0.2), TRUE])

    assert mask.dtype == np.bool_
    np.testing.assert_array_equal(y, np.where(mask, np.float32(3 / 0.8), 0))
    # The share of a sample of n elements deviates by sqrt(p (1 - p) / n), here 0.0009.
    assert abs(mask.mean() - 0.8) < 0.005
    assert abs(np.corrcoef(mask[:, 1:].ravel(), mask[:, :-1].ravel())[0, 1]) < 0.01


def test_calls_differ_without_a_seed_and_agree_with_one() -> None:
    x = np.ones(1000)

    assert (Dropout()(x, None, TRUE)[1] != Dropout()(x, None, TRUE)[1]).any()
    np.testing.assert_array_equal(Dropout(seed=4)(x, None, TRUE)[1], Dropout(seed=4)(x, None, TRUE)[1])


def test_gradient_takes_the_mask_also_where_the_data_is_zero() -> None:
    inputs = [np.zeros(100), np.array(0.5), TRUE]
    outputs = Dropout().forward(inputs)

    by_data, by_ratio, by_mode = Dropout().backward([np.ones(100), None], inputs, outputs)

    np.testing.assert_array_equal(by_data, np.where(outputs[1], 2.0, 0.0))
    assert by_ratio is None
    assert by_mode is None


def test_gradient_from_the_seed() -> None:
    inputs = [np.ones(100), np.array(0.5), TRUE]
    outputs = Dropout(seed=1).forward(inputs)

    (by_data, *_) = Dropout(seed=1).backward([np.ones(100)], inputs, outputs[:1])

    np.testing.assert_array_equal(by_data, outputs[0])


def test_gradient_without_mask_and_seed_is_refused() -> None:
    inputs = [np.ones(100), np.array(0.5), TRUE]

    with pytest.raises(OperatorError, match="received no mask"):
        Dropout().backward([np.ones(100)], inputs, Dropout().forward(inputs)[:1])


@pytest.mark.parametrize(("mode", "dropped"), [(1, True), (0, False)])
def test_mode_of_the_network(mode: int, dropped: bool) -> None:
    y, mask = Dropout(training_mode=mode).forward([np.ones(1000)])

    assert (not mask.all()) == dropped
    assert (y == 0).any() == dropped


def test_dropped_infinities_are_zero() -> None:
    y, mask = Dropout().forward([np.full(100, np.inf), None, TRUE])

    assert set(y[~mask]) == {0.0}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([np.ones(2, np.int32)], "accepted are float16"),
        ([np.ones(2), np.array(1.0), TRUE], "accepted is 0 to 1, 1 excluded"),
        ([np.ones(2), np.array([0.1, 0.2]), TRUE], "accepted is a scalar"),
        ([np.ones(2), np.array(0.1), np.array(1)], "accepted is a bool scalar"),
    ],
)
def test_refusals(inputs: list, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        Dropout().forward(inputs)
