from __future__ import annotations

import pytest

from deep500.core.errors import InvalidInputError, TrainingError
from deep500.training.determinism import deterministic_mode
from tests.unit.training.support import LinearExecutor


class Noting(LinearExecutor):
    seeds: list[int]

    def seed_random(self, seed: int) -> None:
        self.seeds = [seed]


def test_operators_are_seeded_and_the_switches_told() -> None:
    executor = Noting()
    with deterministic_mode(executor, 7) as told:
        assert executor.seeds == [7]

    assert told == {"framework": "numpy-linear", "seed": 7, "switches": {}}


def test_what_is_refused() -> None:
    with pytest.raises(TrainingError, match="accepted is an executor"), deterministic_mode("pytorch", 1):  # type: ignore[arg-type]
        pass
    with pytest.raises(InvalidInputError, match="seed -1"), deterministic_mode(LinearExecutor(), -1):
        pass
