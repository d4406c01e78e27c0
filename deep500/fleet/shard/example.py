"""The case that this part was made for: 4,495 tests, 324 of which need more than two GPUs."""

from __future__ import annotations

import numpy as np

from deep500.fleet.shard.cases import Case
from deep500.fleet.shard.lanes import Lane, lanes_of_texts
from deep500.fleet.shard.whatif import Load

__all__ = ["EXAMPLE_TESTS", "EXAMPLE_TESTS_OVER_TWO", "example_cases", "example_lanes", "example_load"]

#: What was counted in PyTorch's distributed tests.
EXAMPLE_TESTS, EXAMPLE_TESTS_OVER_TWO = 4495, 324

#: What three shards took together when each took 3.6 h, in seconds.
_TOTAL_S = 3 * 3.6 * 3600

_FILES = 250


def example_cases(seed: int = 0) -> list[Case]:
    """Return as many tests, in 250 files, with drawn durations that sum up to three shards of 3.6 hours.

    Their numbers and the total are those that were reported; which test takes how long is drawn (log-normal, as skewed
    as the recorded seconds of files are), and 324 drawn ones need four GPUs.

    Args:
        seed: Seed of what is drawn.
    """
    random = np.random.default_rng(seed)
    seconds = random.lognormal(0.0, 1.5, EXAMPLE_TESTS)
    seconds *= _TOTAL_S / seconds.sum()
    files = np.sort(random.integers(0, _FILES, EXAMPLE_TESTS))
    over = set(random.choice(EXAMPLE_TESTS, EXAMPLE_TESTS_OVER_TWO, replace=False).tolist())
    return [
        Case(f"distributed/test_{file:03}.py::test_{i:04}", float(s), 4.0 if i in over else 2.0)
        for i, (file, s) in enumerate(zip(files.tolist(), seconds.tolist(), strict=True))
    ]


def example_lanes() -> tuple[tuple[Lane, ...], tuple[Lane, ...]]:
    """Return today's runners, 4 GPUs each, and those proposed with as many GPUs: 2 each, and 4 every three hours."""
    return lanes_of_texts(["4x3:24"]), lanes_of_texts(["2x3:46", "4x1:1@3h"])


def example_load(seed: int = 0) -> Load:
    """Return so many commits that today's p90 are about those that were reported: 7.3 h to signal, 4.2 h of running."""
    return Load(per_hour=1.95, spread=0.1, seed=seed)
