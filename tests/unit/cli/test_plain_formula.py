from __future__ import annotations

import pytest

from deep500.cli.plain_formula import plain_formula


@pytest.mark.parametrize(
    ("formula", "plain"),
    [
        ("y = |x|", "y = |x|"),
        (r"y = \arccos x", "y = arccos x"),
        (r"y = \operatorname{arcosh} x", "y = arcosh x"),
        (r"y = \lceil x \rceil", "y = ceil(x)"),
        (r"c = a - b \lfloor a / b \rfloor", "c = a - b floor(a / b)"),
        (r"\max(0, x) + \min(0, \alpha (e^{x / \alpha} - 1))", "max(0, x) + min(0, alpha (e^(x / alpha) - 1))"),
        (r"\min(\text{max}, \max(x, \text{min}))", "min(max, max(x, min))"),
        (r"y_i = \prod_{k \le i} x_k", "y_i = prod_(k <= i) x_k"),
        (
            r"y = \frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt",
            "y = 2/sqrt(pi) int_0^x e^(-t^2) dt",
        ),
        (
            r"y = x\,\Phi(x) = \frac{x}{2} (1 + \operatorname{erf}(x / \sqrt 2))",
            "y = x Phi(x) = x/2 (1 + erf(x / sqrt(2)))",
        ),
        (r"y_{\ldots i \ldots} = x_{\ldots k_i \ldots}", "y_(... i ...) = x_(... k_i ...)"),
        (r"y = \sqrt{\sum_i x_i^2}", "y = sqrt(sum_i x_i^2)"),
        (r"y_{i j} = x_{n_{i j} j}", "y_(i j) = x_(n_(i j) j)"),
        (r"\frac{a + b}{c}", "(a + b)/c"),
        ("", ""),
        (r"\frac{", "frac"),
    ],
)
def test_formula_is_plain_text(formula: str, plain: str) -> None:
    assert plain_formula(formula) == plain
