from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError, TrainingError


@pytest.mark.parametrize("value", [-1, 1.0, True, np.bool_(True), np.float64(3), "3", None, np.int8(-1)])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"runs was given as .*; accepted are whole numbers from 0"):
        check_count("runs", value, least=0)


def test_error_is_of_the_kind_asked_for() -> None:
    with pytest.raises(TrainingError, match="from 1"):
        check_count("epochs", 0, least=1, error=TrainingError)


def test_count_is_pythons_own() -> None:
    assert check_count("runs", 0, least=0) == 0
    assert type(check_count("runs", np.int64(3), least=1)) is int
