from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.networks.creation import create_model


# Table 4 of the paper, in millions.
@pytest.mark.parametrize(
    ("depth", "factor", "millions"),
    [(40, 1, 0.6), (40, 2, 2.2), (40, 4, 8.9), (40, 8, 35.7), (28, 10, 36.5), (16, 8, 11.0)],
)
def test_number_of_parameters_is_that_of_the_paper(depth: int, factor: int, millions: float) -> None:
    assert round(create_model("wide_resnet", depth=depth, factor=factor).parameter_count / 1e6, 1) == millions


def test_exact_numbers_of_parameters() -> None:
    # As widely used implementations of WRN-28-10 and WRN-16-8 report them.
    assert create_model("wide_resnet").parameter_count == 36_479_194
    assert create_model("wide_resnet", depth=16, factor=8).parameter_count == 10_961_370


@pytest.mark.parametrize("depth", [4, 9, 27, 10.0, True, None])
def test_other_depths_are_refused(depth: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"depth was given as .* accepted is 6n \+ 4"):
        create_model("wide_resnet", depth=depth)
