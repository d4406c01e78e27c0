from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.measure.metrics._work import count_flops
from deep500.measure.workload import Work


class Counting:
    def __init__(self, flops: Any) -> None:
        self.count = flops

    def flops(self) -> Any:
        return self.count


@pytest.mark.parametrize("work", [12, 12.0, np.int64(12), np.float32(12), Counting(12), Work(flops=12)])
def test_operations_come_from_whatever_knows_them(work: Any) -> None:
    assert count_flops(work) == 12.0
    assert isinstance(count_flops(work), float)


@pytest.mark.parametrize(
    "work",
    [None, -1, math.nan, math.inf, True, "12", [12], Work(), Counting(None), Counting(-3), Counting("many"), 10**400],
)
def test_what_does_not_know_its_operations_is_refused(work: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"operations were given as .*accepted are .*\.flops\(\)"):
        count_flops(work)
