from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.statistics.regression import INTERCEPT, quantile_regression

INDEX = np.arange(41.0)
SIZES = INDEX / 10
TIMES = 1 + 0.5 * SIZES + np.exp(np.sin(7 * INDEX))

#: Of statsmodels 0.15.0, QuantReg(...).fit(q, p_tol=1e-10, max_iter=5000), which is iterative and right to 6 digits.
STATSMODELS = {
    0.25: (1.606931903983823, 0.469060807432727),
    0.5: (2.2034341279198912, 0.4295190212318741),
    0.75: (3.1903002087421646, 0.4095099792112551),
}


def loss(coefficients: tuple[float, float], quantile: float) -> float:
    residuals = TIMES - coefficients[0] - coefficients[1] * SIZES
    return float(np.sum(residuals * (quantile - (residuals < 0))))


@pytest.mark.parametrize("quantile", STATSMODELS)
def test_coefficients_are_those_of_statsmodels_or_better(quantile: float) -> None:
    found = quantile_regression(TIMES, {"size": SIZES}, quantile).coefficients
    estimates = (found[INTERCEPT].estimate, found["size"].estimate)

    assert estimates == pytest.approx(STATSMODELS[quantile], rel=1e-5)
    assert loss(estimates, quantile) <= loss(STATSMODELS[quantile], quantile)
    for interval in found.values():
        assert interval.low < interval.estimate < interval.high
        assert not interval.exact


def test_one_factor_of_two_levels_is_the_difference_of_medians() -> None:
    rng = np.random.default_rng(0)
    slow, fast = rng.lognormal(0.5, 0.3, 31), rng.lognormal(0, 0.3, 31)
    result = quantile_regression(np.concatenate([slow, fast]), {"system": ["old"] * 31 + ["new"] * 31})

    assert result.base_levels == {"system": "new"}
    assert list(result.coefficients) == ["(base)", "system[old]"]
    assert result.coefficients["(base)"].estimate == pytest.approx(np.median(fast))
    difference = result.coefficients["system[old]"]
    assert difference.estimate == pytest.approx(np.median(slow) - np.median(fast))
    assert difference.low > 0
    assert difference.contains(math.exp(0.5) - 1)


def test_response_in_another_unit_and_shifted_scales_and_shifts_the_result() -> None:
    result = quantile_regression(TIMES, {"size": SIZES}).coefficients
    other = quantile_regression(TIMES * 1e-6 + 2, {"size": SIZES}).coefficients

    for name, shift in ((INTERCEPT, 2.0), ("size", 0.0)):
        expected = [result[name].low, result[name].estimate, result[name].high]
        found = [(value - shift) * 1e6 for value in (other[name].low, other[name].estimate, other[name].high)]
        assert found == pytest.approx(expected, rel=0.01)


def test_true_coefficient_is_covered() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(40):
        size = rng.normal(size=30)
        result = quantile_regression(1 + 0.3 * size + rng.lognormal(0, 0.5, 30), {"size": size})
        held += result.coefficients["size"].contains(0.3)

    assert held >= 35  # of a nominal 95 %, fewer have a chance of 1 %


@pytest.mark.parametrize(
    ("response", "factors", "quantile", "message"),
    [
        (TIMES, {}, 0.5, "There is no factor"),
        (TIMES, {"size": SIZES[:-1]}, 0.5, r"Factor size has shape \(40,\); there are 41"),
        (TIMES, {"size": SIZES, "double": 2 * SIZES}, 0.5, "size, double explain each other"),
        (TIMES, {"size": np.ones(41)}, 0.5, "one is constant"),
        (TIMES, {"size": SIZES}, 0.9, "need at least 100 samples.*there are 41"),
        (TIMES, {"size": SIZES}, 1.0, "quantile lies between 0 and 1"),
        (np.full(41, math.nan), {"size": SIZES}, 0.5, "41 of 41 samples of the response are NaN"),
        (TIMES, {"size": np.full(41, math.nan)}, 0.5, "values of factor size are NaN"),
    ],
)
def test_what_cannot_be_told_is_refused(response: Any, factors: Any, quantile: float, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        quantile_regression(response, factors, quantile)
