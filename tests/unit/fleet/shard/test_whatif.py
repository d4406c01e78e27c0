from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import FleetError
from deep500.fleet.shard.cases import Case
from deep500.fleet.shard.example import (
    EXAMPLE_TESTS,
    EXAMPLE_TESTS_OVER_TWO,
    example_cases,
    example_lanes,
    example_load,
)
from deep500.fleet.shard.lanes import lanes_of_texts
from deep500.fleet.shard.whatif import Load, WhatIf, interval_dict, scenario_dict, what_if
from deep500.fleet.shard.whatif import _change as change_of

CASES = [
    *(Case(f"a.py::test_{i}", 600.0, 1, runs=10, failures=2) for i in range(12)),
    Case("b.py::test_four", 1200.0, 4, runs=5, failures=3),
    Case("b.py::test_eight", 100.0, 8, failures=1),
]


@pytest.fixture(scope="module")
def result() -> WhatIf:
    today, proposed = lanes_of_texts(["8x2:4"]), lanes_of_texts(["2x2:16", "4x1@3h"])
    return what_if(CASES, today, proposed, Load(per_hour=1.5, commits=600, replications=8))


def test_what_is_tested(result: WhatIf) -> None:
    assert vars(result.today.coverage) == {
        "every_commit": 14, "periodic": 0, "never": 0,
        "failures_every_commit": 28, "failures_periodic": 0, "failures_never": 0,
    }  # fmt: skip
    assert vars(result.proposed.coverage) == {
        "every_commit": 12, "periodic": 1, "never": 1,
        "failures_every_commit": 24, "failures_periodic": 3, "failures_never": 1,
    }  # fmt: skip


def test_hours_and_loads(result: WhatIf) -> None:
    assert result.today.gpu_hours_per_commit == pytest.approx(8 * 8500 / 3600)
    assert result.proposed.gpu_hours_per_commit == pytest.approx(2 * 7200 / 3600)
    assert result.proposed.gpu_hours_per_day == pytest.approx(24 * 1.5 * 4 + 8 * 4 * 1200 / 3600)
    assert result.today.utilisation == {"8-GPU": pytest.approx(1.5 * 8500 / 3600 / 4)}
    assert result.proposed.utilisation == {
        "2-GPU": pytest.approx(1.5 * 2 / 16),
        "4-GPU every 3 h": pytest.approx(1200 / 10800),
    }
    assert not result.today.is_overloaded
    assert (result.today.gpus, result.proposed.gpus) == (32, 36)


def test_what_commits_wait_for(result: WhatIf) -> None:
    for scenario in (result.today, result.proposed):
        mean = {name: np.asarray(scenario.samples[f"{name}_mean_s"]) for name in ("signal", "queue", "run")}
        assert mean["signal"] == pytest.approx(mean["queue"] + mean["run"])
    verdicts = {change.figure: change.verdict for change in result.changes}
    assert verdicts["queue_p90_s"] == "shorter"
    assert verdicts["signal_p90_s"] == "shorter"
    assert "detection_p50_s" not in verdicts
    detection = result.proposed.estimate("detection_mean_s")
    assert detection is not None
    assert detection.estimate == pytest.approx(10800 / 2 + 1200, rel=0.03)
    assert result.today.estimate("detection_mean_s") is None


def test_nothing_changes_with_the_same_runners() -> None:
    lanes = lanes_of_texts(["8x2:4"])
    same = what_if(CASES, lanes, lanes, Load(per_hour=1.5, commits=100, replications=8))
    assert {change.verdict for change in same.changes} == {"undecided"}
    assert same.today.samples == same.proposed.samples


def test_it_depends_on_the_seed_only() -> None:
    lanes = lanes_of_texts(["8x2:4"])
    load = Load(per_hour=1.5, commits=100, replications=2)
    made = [what_if(CASES, lanes, lanes, replace(load, seed=seed)).today.samples for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_below_six_simulations_nothing_is_decided() -> None:
    few = what_if(CASES, lanes_of_texts(["8x2:4"]), lanes_of_texts(["8x2:9"]), Load(1.5, commits=200, replications=5))
    assert {change.verdict for change in few.changes} == {"undecided"}
    said = interval_dict(few.today.estimate("signal_p50_s"))
    assert said is not None
    assert said["coverage"] == 0


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([-3, -2, -4, -1, -2, -3, -1, -2], "shorter"),
        ([3, 2, 4, 1, 2, 3, 1, 2], "longer"),
        ([-3, -2, 4, 1, -2, 3, 1, -2], "undecided"),
        ([-3, -2, -4, -1, -2], "undecided"),
    ],
)
def test_verdicts_need_an_interval_beside_zero(differences: list[float], verdict: str) -> None:
    today = [10.0 * i for i in range(len(differences))]
    proposed = [old + difference for old, difference in zip(today, differences, strict=True)]
    assert change_of("signal_p90_s", today, proposed).verdict == verdict


def test_recorded_arrivals_and_set_up() -> None:
    arrivals = tuple(1e9 + 3600.0 * i for i in range(50))
    load = Load(arrivals=arrivals, replications=2, spread=0.0, setup_s=100.0)
    found = what_if([Case("a", 500.0)], lanes_of_texts(["1x1"]), lanes_of_texts(["1x2:2"]), load)
    assert load.rate_per_hour == pytest.approx(1.0)
    assert found.today.samples["signal_p90_s"] == (600.0, 600.0)
    assert found.today.samples["queue_p90_s"] == (0.0, 0.0)
    assert found.proposed.gpu_hours_per_commit == pytest.approx(600 / 3600)  # the second shard has nothing, and no job


def test_overload_is_said() -> None:
    lanes = lanes_of_texts(["8x2:1"])
    assert what_if(CASES, lanes, lanes, Load(per_hour=1.5, commits=50, replications=1)).today.is_overloaded


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "give one of the two"),
        ({"per_hour": 1.0, "arrivals": (1.0,) * 20}, "give one of the two"),
        ({"arrivals": (1.0,) * 3}, "ten or more"),
        ({"arrivals": (2.0, *(1.0,) * 10)}, "in rising order"),
        ({"per_hour": 1.0, "commits": 3}, "cannot be simulated"),
        ({"per_hour": 1.0, "replications": 0}, "cannot be simulated"),
        ({"per_hour": 1.0, "spread": -0.1}, "cannot be simulated"),
    ],
)
def test_mistakes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FleetError, match=message):
        Load(**changes)


def test_the_example() -> None:
    cases = example_cases()
    assert len(cases) == EXAMPLE_TESTS
    assert sum(case.gpus > 2 for case in cases) == EXAMPLE_TESTS_OVER_TWO
    assert sum(case.seconds or 0.0 for case in cases) == pytest.approx(3 * 3.6 * 3600)
    found = what_if(cases, *example_lanes(), replace(example_load(), replications=8))
    assert found.today.gpus == found.proposed.gpus
    signal, run = (found.today.estimate(f"{name}_p90_s") for name in ("signal", "run"))
    assert signal is not None
    assert run is not None
    assert signal.estimate / 3600 == pytest.approx(7.3, abs=0.7)
    assert run.estimate / 3600 == pytest.approx(4.2, abs=0.2)
    coverage = found.proposed.coverage
    assert (coverage.every_commit, coverage.periodic, coverage.never) == (4171, 324, 0)
    verdicts = {change.figure: change.verdict for change in found.changes}
    assert verdicts["signal_p90_s"] == "shorter"
    assert scenario_dict(found.proposed)["coverage"]["periodic"] == 324


@pytest.mark.parametrize("values", [{"spread": float("nan")}, {"setup_s": float("inf")}, {"replications": 10**9}])
def test_what_cannot_be_simulated_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(FleetError, match=r"cannot be simulated|commits in all"):
        replace(example_load(), **values)
