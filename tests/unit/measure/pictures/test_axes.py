from __future__ import annotations

import pytest

from deep500.measure.pictures.ecdf import ecdf
from deep500.measure.pictures.violin import violin
from tests.unit.measure.pictures.support import axes_of, draws, measurement


@pytest.mark.parametrize("picture", [violin, ecdf])
@pytest.mark.parametrize(
    ("rows", "scale", "starts_at_zero", "note"),
    [
        ([[1.0, 2.5]], "linear", True, ""),
        ([[0.0, 2.5]], "linear", True, ""),
        ([[2.0, 2.0]], "linear", True, ""),
        ([[2.0, 2.5]], "linear", False, "(the axis does not start at 0)"),
        ([[1.0, 49.0]], "linear", True, ""),
        ([[1.0, 51.0]], "log", False, "(logarithmic)"),
        ([[-1.0, 2.0]], "linear", False, ""),
        ([[-2.0, -2.0]], "linear", False, ""),
    ],
)
def test_range_and_scale_fit_the_samples_and_are_told(picture, rows, scale, starts_at_zero, note):
    axes = axes_of(picture(measurement(rows)))
    low, high = axes.get_xlim()

    assert axes.get_xscale() == scale
    assert bool(low == 0) is starts_at_zero
    assert low <= min(rows[0]) <= max(rows[0]) < high
    assert axes.get_xlabel().endswith(f"lower is better {note}".rstrip())


@pytest.mark.parametrize("picture", [violin, ecdf])
def test_an_incomplete_measurement_is_told_in_red(picture):
    good = picture(measurement(draws(2, 5)))
    bad = picture(measurement(draws(2, 5), complete=False, failure="interrupted"))

    assert good.get_suptitle() == "Deep500 1.0 | 2026-01-01 00:00 UTC | Test CPU"
    assert "INCOMPLETE: interrupted" in bad.get_suptitle()
    assert bad._suptitle.get_color() != good._suptitle.get_color()
