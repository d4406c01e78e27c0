from __future__ import annotations

import numpy as np
import pytest

from deep500.training.optimizers._moments import moment_scalars, moments


def test_corrections_are_in_the_numbers() -> None:
    numbers = moment_scalars(0.1, 0.9, 0.99, 1e-3, 3)

    assert numbers["rate"] == pytest.approx(0.1 * np.sqrt(1 - 0.99**3) / (1 - 0.9**3))
    assert numbers["epsilon"] == pytest.approx(1e-3 * np.sqrt(1 - 0.99**3))
    assert moment_scalars(0.1, 0.9, 0.99, 1e-3, 3, corrected=False)["rate"] == 0.1


def test_each_moment_has_its_own_decay() -> None:
    slots = {"first": np.array(2.0), "second": np.array(5.0)}
    first, second = moments(np.array(3.0), slots, moment_scalars(0.1, 0.75, 0.5, 1e-8, 1))

    assert (first, second) == (0.75 * 2 + 0.25 * 3, 0.5 * 5 + 0.5 * 9)
