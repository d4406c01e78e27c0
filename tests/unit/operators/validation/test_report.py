from __future__ import annotations

import pytest

from deep500.core.errors import OperatorError
from deep500.operators.validation.report import (
    Derivative,
    EquivalenceReport,
    ForwardReport,
    GradientReport,
    InputGradient,
    settled,
)


def derivative(analytic: float, numerical: float, allowed: float = 1e-3) -> Derivative:
    return Derivative(0, (1, 2), 0, (3,), analytic, numerical, allowed)


def row(index: int, worst: Derivative | None, excluded: int = 0) -> InputGradient:
    return InputGradient(index, "float32", (2, 3), 6, excluded, 0, worst, 1e-6, 1e-5, "float64")


def test_a_derivative() -> None:
    found = derivative(1.01, 1.0)

    assert found.error == pytest.approx(0.01)
    assert found.relative_error == pytest.approx(0.01 / 1.01)
    assert found.ratio == pytest.approx(1.01)
    assert str(found) == (
        "that of output 0 at [3] by element [1, 2]: backward returns 1.01, the differences of forward give 1 "
        "(relative error 0.0099, ratio 1.01; they may differ by 0.001)"
    )
    assert derivative(1.0, 0.0).ratio is None
    assert derivative(0.0, 0.0).relative_error == 0.0
    assert "the weighted outputs by element [4]" in str(Derivative(0, (4,), None, None, 1.0, 2.0, 0.0))


def test_the_worst_is_that_farthest_beyond_what_is_allowed() -> None:
    far, near = derivative(2.0, 1.0, 0.1), derivative(5.0, 1.0, 10.0)
    report = GradientReport("f", inputs=(row(0, near, 2), row(1, far, 1), row(2, None)))

    assert report.worst is far
    assert report.excluded == 3
    assert GradientReport("f").worst is None


def test_what_is_wrong_is_an_error_unless_it_is_asked_for() -> None:
    report = ForwardReport("f", tuple(f"Wrong {i}." for i in range(5)))

    assert settled(report, False) is report
    with pytest.raises(OperatorError, match=r"^Wrong 0\. Wrong 1\. Wrong 2\. And 2 more\.$"):
        settled(report, True)
    assert settled(ForwardReport("f"), True).passed


def test_tables() -> None:
    assert str(ForwardReport("f", ("It is wrong.",), ("It is cold.",))) == (
        "forward of f, against nothing: FAILED\n  wrong: It is wrong.\n  note: It is cold."
    )
    text = str(EquivalenceReport("f", other="g", cases=3, compared={"float32": 2}, refused={"g": 1}, worst=0.5))
    assert "compared            2 in float32" in text
    assert "refused             1 by g" in text
    assert "0.5 of what is allowed" in text
