from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import TrainingError
from deep500.training.hyperparameters import fraction, non_negative, positive


@pytest.mark.parametrize("check", [non_negative, positive, fraction])
@pytest.mark.parametrize("value", [10**400, 10**5000, -1, "a", None, float("nan"), True], ids=range(7))
def test_what_is_no_such_number_is_refused(check: Any, value: Any) -> None:
    with pytest.raises(TrainingError, match=r"rate was given as .*; accepted are"):
        check("rate", value)


def test_numbers_become_floats() -> None:
    assert (non_negative("rate", 0), positive("rate", 2), fraction("rate", 0.5)) == (0.0, 2.0, 0.5)
