from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import FleetError
from deep500.fleet.input_report import InputReport
from deep500.fleet.shard.cases import Case, cases_of_times
from deep500.fleet.shard.lanes import Lane, lanes_of_texts
from deep500.fleet.shard.planning import Plan, guarantee, make_plan, round_robin
from deep500.fleet.shard.test_times import is_distributed, read_test_times
from tests.unit.fleet.shard.support import PROJECT

RECORDED = PROJECT.parent / "shared" / "data" / "shard" / "test-times.json.gz"

seconds = st.integers(0, 1000).map(float)


def files(*durations: float | None) -> list[Case]:
    return [Case(f"file_{i}", duration) for i, duration in enumerate(durations)]


def best_makespan(durations: list[float], shards: int) -> float:
    """Return the least makespan there is, by trying everything."""
    return min(
        max(sum(d for d, s in zip(durations, chosen, strict=True) if s == shard) for shard in range(shards))
        for chosen in itertools.product(range(shards), repeat=len(durations))
    )


def names(plan: Plan) -> list[str]:
    return sorted(case.name for shard in plan.shards for part in shard.parts for case in part.cases)


@given(st.lists(seconds, min_size=1, max_size=7), st.integers(1, 3))
def test_no_worse_than_graham_proved(durations: list[float], shards: int) -> None:
    plan = make_plan(files(*durations), [Lane(1, shards, shards)])
    best = best_makespan(durations, shards)
    summary = plan.summary(plan.lanes[0])
    assert summary.lower_bound_s <= best + 1e-9
    assert best - 1e-9 <= plan.makespan_s <= guarantee(shards) * best + 1e-9
    assert summary.makespan_s == plan.makespan_s


def test_graham_bound_is_reached() -> None:
    # His own example for two machines: 7/6 of the best.
    plan = make_plan(files(3, 3, 2, 2, 2), [Lane(1, 2, 2)])
    assert plan.makespan_s == 7
    assert best_makespan([3, 3, 2, 2, 2], 2) == 6
    assert guarantee(2) == pytest.approx(7 / 6)


@given(
    st.lists(st.tuples(seconds, st.integers(1, 5), st.integers(0, 3)), max_size=25),
    st.booleans(),
    st.one_of(st.none(), st.floats(1, 500)),
)
def test_every_test_runs_once_where_it_has_its_gpus(
    tests: list[tuple[float, int, int]], spill: bool, limit: float | None
) -> None:
    cases = [Case(f"file_{file}.py::test_{i}", s, gpus) for i, (s, gpus, file) in enumerate(tests)]
    lanes = lanes_of_texts(["1x2", "2x3", "4x1@3h"])
    plan = make_plan(cases, lanes, split_over_s=limit, spill=spill)
    assert sorted(names(plan) + [case.name for case in plan.lost]) == sorted(case.name for case in cases)
    assert {case.name for case in plan.lost} == {case.name for case in cases if case.gpus > 4}
    for shard in plan.shards:
        for part in shard.parts:
            for case in part.cases:
                assert shard.lane.gpus >= case.gpus
                assert shard.lane.is_periodic == (case.gpus > 2)
                if not spill:
                    assert case.gpus > (0 if shard.lane.gpus == 1 else shard.lane.gpus / 2)
    total = math.fsum(shard.seconds for shard in plan.shards)
    assert total == pytest.approx(math.fsum(case.seconds or 0 for case in cases if case.gpus <= 4))
    told = [line for shard in plan.shards for line in shard.lines]
    assert len(told) == len(set(told))


def test_larger_runners_help_where_they_may() -> None:
    cases = [Case("a", 10, 1), Case("b", 10, 1), Case("c", 4, 4)]
    lanes = lanes_of_texts(["1x1", "4x1"])
    assert make_plan(cases, lanes).makespan_s == 20
    spilled = make_plan(cases, lanes, spill=True)
    assert spilled.makespan_s == 14
    assert [case.name for case in spilled.shards[1].parts[1].cases] == ["c"]


def test_files_over_a_limit_are_divided_by_tests_else_evenly() -> None:
    cases = [Case("a.py", 100), *(Case(f"b.py::test_{i}", 20) for i in range(4)), Case("c.py::test_long", 90)]
    plan = make_plan(cases, [Lane(1, 2, 2)], split_over_s=40)
    told = sorted(line for shard in plan.shards for line in shard.lines)
    assert told == ["a.py 1/3", "a.py 2/3", "a.py 3/3", *(f"b.py::test_{i}" for i in range(4)), "c.py"]
    assert plan.to_dict()["even_shares"] == ["a.py"]
    assert [part.seconds for s in plan.shards for part in s.parts if part.file == "b.py"] == [40, 40]


def test_a_file_that_two_lanes_share_is_told_by_tests() -> None:
    cases = [Case("a.py::test_one", 1, 1), Case("a.py::test_four", 1, 4), Case("b.py::test_one", 1, 1)]
    plan = make_plan(cases, lanes_of_texts(["2x1", "4x1@30m"]))
    assert [shard.lines for shard in plan.shards] == [["a.py::test_one", "b.py"], ["a.py::test_four"]]
    assert plan.makespan_s == 2


def test_marks_that_would_skip_tests_on_their_runner_are_told() -> None:
    cases = [Case("a.py::test_modest", 1, 2, declared=4), Case("a.py::test_square", 1, 4, declared=4)]
    plan = make_plan(cases, lanes_of_texts(["2x1", "4x1"]))
    assert plan.held_back == (cases[0],)
    assert plan.to_dict()["held_back_by_their_mark"] == [{"test": "a.py::test_modest", "declared": 4, "gpus": 2}]
    assert [part.name for shard in plan.shards for part in shard.parts] == ["a.py::test_modest", "a.py::test_square"]


def test_unknown_durations_are_stated() -> None:
    plan = make_plan(files(10, None, 20, 90, None), [Lane(1, 2, 2)])
    assert vars(plan.assumed) == {
        "count": 2, "of": 5, "seconds": 20, "rule": "the median of the 3 that are known",
    }  # fmt: skip
    assert make_plan(files(10, None, 90), [Lane(1, 2, 2)], unknown="max").assumed.seconds == 90
    assert make_plan(files(10, None, 90), [Lane(1, 2, 2)], unknown=7.0).assumed.seconds == 7
    nothing = make_plan(files(None, None), [Lane(1, 2, 2)])
    assert nothing.assumed.seconds == 1
    assert nothing.makespan_s == 1
    assert make_plan(files(1, 2), [Lane(1, 2, 2)]).assumed.seconds is None


@given(st.lists(seconds, max_size=12), st.integers(1, 4))
def test_round_robin_deals(durations: list[float], shards: int) -> None:
    plan = round_robin(files(*durations), shards)
    assert [shard.seconds for shard in plan.shards] == [math.fsum(durations[i::shards]) for i in range(shards)]


def test_the_order_is_stable() -> None:
    cases = files(3, 1, 2)
    assert make_plan(cases, [Lane(1, 2, 2)]) == make_plan(cases, [Lane(1, 2, 2)])


@pytest.mark.parametrize(
    ("cases", "limit", "unknown", "message"),
    [
        (files(1, -1), None, "median", "takes -1"),
        (files(math.inf), None, "median", "a finite number"),
        ([Case("a", 1), Case("a", 2)], None, "median", "occurs twice"),
        ([Case("a.py", 1), Case("a.py::test", 2)], None, "median", "stands beside tests of it"),
        (files(1), 0.0, "median", "above 0"),
        (files(1), None, "mean", "median, max and seconds"),
    ],
)
def test_mistakes(cases: list[Case], limit: float | None, unknown: str, message: str) -> None:
    with pytest.raises(FleetError, match=message):
        make_plan(cases, [Lane(1, 2, 2)], split_over_s=limit, unknown=unknown)


def test_no_lane_and_no_shard() -> None:
    with pytest.raises(FleetError, match="no runners"):
        make_plan(files(1), [])
    with pytest.raises(FleetError, match="no shard 3; the plan has the shards 1 to 2"):
        make_plan(files(1), [Lane(1, 2, 2)]).shard(3)
    empty = make_plan([], [Lane(1, 2, 2)])
    assert empty.makespan_s == 0
    assert [b.saved for b in empty.baselines()] == [0, 0]


#: What three shards save against round robin, and the most that any plan could, as shares; by configuration.
SAVED = {
    ("default", "distributed"): 0.275,
    ("default", "inductor_distributed"): 0.202,
    ("linux-jammy-cuda13.0-py3.10-gcc11", "distributed"): 0.099,
    ("linux-jammy-cuda13.2-py3.10-gcc11", "distributed"): 0.277,
    ("linux-jammy-py3.10-gcc11", "distributed"): 0.451,
    ("linux-jammy-rocm-py3.10", "distributed"): 0.306,
    ("linux-jammy-rocm-py3.10-mi200", "distributed"): 0.068,
    ("linux-jammy-rocm-py3.10-mi350", "distributed"): 0.119,
    ("linux-jammy-rocm-py3.10-mi355", "distributed"): 0.190,
    ("linux-noble-rocm-nightly-py3.12-gfx942", "distributed"): 0.230,
    ("linux-noble-rocm-py3.12-mi300", "distributed"): 0.244,
    ("unit-test / inductor-test", "inductor_distributed"): 0.197,
    ("unit-test / inductor-test-cuda132", "inductor_distributed"): 0.205,
}


@pytest.mark.skipif(not RECORDED.is_file(), reason="the recorded seconds of ../shared/data are not there")
def test_recorded_seconds_of_distributed_tests() -> None:
    recordings = [r for r in read_test_times(RECORDED, InputReport()) if is_distributed(r.configuration)]
    found = {}
    taken, dealt = 0.0, 0.0
    for recording in recordings:
        plan = make_plan(cases_of_times(recording.seconds), [Lane(4, 3, 3)])
        listed, alphabetical = plan.baselines()
        assert listed.makespan_s == alphabetical.makespan_s  # the file lists them in alphabetical order
        assert listed.most - listed.saved < 0.005  # where less is saved, round robin was near the bound by chance
        found[recording.environment, recording.configuration] = listed.saved
        taken, dealt = taken + plan.makespan_s, dealt + listed.makespan_s
    assert found == {name: pytest.approx(saved, abs=6e-4) for name, saved in SAVED.items()}
    assert sum(saved >= 0.15 for saved in found.values()) == 10
    assert 1 - taken / dealt == pytest.approx(0.22, abs=0.01)
