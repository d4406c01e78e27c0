from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.environment import isolation
from deep500.measure.results.document import Measurement, Statistic
from deep500.measure.results.summary import summarise
from deep500.measure.sampling import benchmark as module
from deep500.measure.sampling import checks
from deep500.measure.sampling.benchmark import bench
from deep500.measure.sampling.launch import joined
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.progress import Progress
from deep500.measure.workload import WorkloadSpec
from tests.unit.measure.sampling.workloads import HERE, Described, quick

QUICK = SamplingPlan(minimum_time_s=0.0, warm_up=1, time_limit_s=1.0)


def test_function_is_measured_in_this_process() -> None:
    found = bench(quick, plan=QUICK)

    assert found.systems[0].spec == f"{HERE}:quick"
    assert found.design.launches == 1
    assert [process.fresh for process in found.processes] == [False]
    assert found.complete
    assert found.environment["sections"]


def test_workload_of_the_caller_is_left_open() -> None:
    closed: list[bool] = []

    class Open(Described):
        def close(self) -> None:
            closed.append(True)

    bench(Open(), plan=QUICK)

    assert not closed


def test_text_is_measured_in_fresh_processes() -> None:
    told: list[Progress] = []
    kept: list[Measurement] = []

    found = bench(f"{HERE}:quick", launches=2, plan=QUICK, on_progress=told.append, on_launch=kept.append)

    assert [launch.process for launch in found.systems[0].metric().launches] == [0, 1]
    assert [process.fresh for process in found.processes] == [True, True]
    assert [result.complete for result in kept] == [False, True]
    assert kept[0].failure == "1 of 2 launches were run"
    assert kept[1] == found
    assert [p.launch for p in told if p.phase == "starting"] == [1, 2]


def test_several_share_processes() -> None:
    found = bench(f"{HERE}:Described", f"{HERE}:Described,seconds=0.0002", launches=2, plan=QUICK)

    assert found.design.pairing == "samples"
    assert len(found.processes) == 2
    assert [len(system.metric().launches) for system in found.systems] == [2, 2]


def test_launches_of_their_own_come_in_random_order(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    measure = module.run_launch

    def fake(specs: Any, plan: SamplingPlan, *, seed: int, number: int, environment: bool, tell: Any) -> Any:
        order.append(specs[0])
        return measure([lambda: Described(seconds=0)], plan, fresh=False, environment=environment)

    monkeypatch.setattr(module, "launch_process", fake)

    found = bench("m:a", "m:b", launches=12, plan=QUICK, pairing="launches")

    assert len(found.processes) == 24
    assert {tuple(sorted(pair)) for pair in zip(order[::2], order[1::2])} == {("m:a", "m:b")}
    assert len(set(zip(order[::2], order[1::2]))) == 2
    for system, text in zip(found.systems, ("m:a", "m:b")):
        assert [order[launch.process] for launch in system.metric().launches] == [text] * 12


@pytest.mark.parametrize(
    ("texts", "pairing"),
    [
        (["model:a@x", "model:b@x"], "samples"),
        (["model:a@x", "model:a@y"], "launches"),
        (["model:a@x:cpu", "model:a@x:gpu:0"], "launches"),
        (["model:a", "model:a@x"], "launches"),
    ],
)
def test_frameworks_are_kept_apart(monkeypatch: pytest.MonkeyPatch, texts: list[str], pairing: str) -> None:
    assert checks.checked_pairing(None, [_parsed(text) for text in texts], True) == pairing


def _parsed(text: str) -> Any:
    _, _, place = text.partition("@")
    framework, _, device = place.partition(":")
    return WorkloadSpec(text, "model", "a", {}, framework or None, device or None)


def test_workload_against_itself_gets_two_names() -> None:
    found = bench(quick, quick, plan=QUICK)

    assert [system.label for system in found.systems] == [f"{HERE}:quick #1", f"{HERE}:quick #2"]


def test_labels_and_threads() -> None:
    found = bench(f"{HERE}:Described", launches=1, plan=SamplingPlan(warm_up=1, threads=1), labels=["d"])

    assert found.system("d").factors["threads"] == 1


def test_launches_that_differ_are_refused() -> None:
    with pytest.raises(MeasurementError, match=r"Launch 2 of .* did not measure what the first did: its data hash"):
        bench(f"{HERE}:Described,changing=True", launches=2, plan=QUICK)


def test_strict_refuses_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*, strict: bool) -> None:
        raise isolation.IsolationError(())

    monkeypatch.setattr(module, "record_environment", refuse)

    with pytest.raises(isolation.IsolationError):
        bench(lambda: pytest.fail("it ran"), strict=True)


@pytest.mark.parametrize(
    ("workloads", "settings", "message"),
    [
        ([], {}, "nothing to measure"),
        ([3], {}, "given as int"),
        (["quick"], {}, "is not a workload"),
        ([quick], {"launches": 0}, "launches was given as 0"),
        ([quick], {"launches": True}, "launches was given as True"),
        ([quick], {"launches": 2}, "2 launches need workloads that a fresh process can build"),
        ([quick, quick], {"labels": ["a"]}, "labels were given as"),
        ([quick, quick], {"labels": ["a", "a"]}, "2 different texts"),
        ([quick, quick], {"labels": "ab"}, "labels were given as 'ab'"),
        ([quick, quick], {"pairing": "pairs"}, "pairing was given as 'pairs'; accepted are samples, launches"),
        ([quick, quick], {"pairing": "launches"}, "cannot be given processes of their own"),
        ([quick], {"pairing": "pairs"}, "pairing was given as 'pairs'"),
        ([quick], {"labels": [""]}, "accepted: one text"),
        ([quick], {"labels": [1]}, "accepted: one text"),
        ([quick, f"{HERE}:quick"], {}, "all of one kind"),
        ([Described], {}, r"an object of it: Described\(\.\.\.\)"),
        ([quick], {"plan": {}}, "plan was given as {}; accepted is a SamplingPlan"),
        ([quick], {"statistic": "median"}, "statistic was given as 'median'; accepted is a Statistic"),
        ([quick], {"plan": SamplingPlan(threads=2)}, "threads can be set for fresh processes only"),
        (
            [quick],
            {"statistic": Statistic("quantile", 0.9), "plan": SamplingPlan(calls_per_sample=7)},
            "7 calls a sample",
        ),
    ],
)
def test_contradictions_are_refused(workloads: list[Any], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        bench(*workloads, **settings)


def test_workloads_that_do_not_do_the_same_are_refused_after_the_first_launch() -> None:
    class Other(Described):
        @property
        def identity(self) -> dict[str, Any]:
            return {"problem": "another"}

    with pytest.raises(MeasurementError, match="workload"):
        bench(Described(), Other(), plan=QUICK, on_launch=lambda result: pytest.fail("it went on"))


def test_functions_that_are_named_together_are_alternatives() -> None:
    def other() -> int:
        return 2000 * 1999 // 2

    found = bench(quick, other, plan=QUICK)

    assert [system.spec.rpartition(".")[2] for system in found.systems] == ["workloads:quick", "other"]


def test_quantile_gets_the_samples_that_it_needs() -> None:
    found = bench(quick, plan=QUICK, statistic=Statistic("quantile", 0.95))

    assert found.design.plan["minimum_samples"] == 72
    assert len(found.systems[0].metric().rows[0]) >= 72


def test_quantile_is_that_of_single_runs() -> None:
    """One run in fifty is slow; of means of many runs none is."""
    count = 0

    def sometimes_slow() -> None:
        nonlocal count
        count += 1
        end_s = time.perf_counter() + (2e-4 if count % 50 == 0 else 0.0)
        while time.perf_counter() < end_s:
            continue

    plan = SamplingPlan(minimum_time_s=0.0, minimum_samples=2000, maximum_samples=2000)
    found = bench(sometimes_slow, plan=plan, statistic=Statistic("quantile", 0.99))

    assert found.systems[0].metric().launches[0].calls_per_sample == 1
    assert summarise(found.systems[0].metric(), found.design.statistic).estimate > 1e-4


def test_extreme_quantile_gets_room_for_its_samples() -> None:
    plan = checks.checked_plan(SamplingPlan(), Statistic("quantile", 0.9997), True)

    assert plan.minimum_samples == 12295
    assert plan.maximum_samples > 12295


def test_of_launches_the_worst_scores_stand_and_factors_have_to_agree() -> None:
    def system(value: float, **factors: Any) -> Any:
        found = bench(Described(), plan=QUICK).systems[0]
        score = dataclasses.replace(found.scores[0], value=value)
        return dataclasses.replace(found, scores=(score,), factors={**found.factors, **factors})

    assert joined([system(99.0), system(10.0), system(98.0)], [0, 1, 2]).scores[0].value == 10.0
    with pytest.raises(MeasurementError, match=r"Launch 2 .* its factors"):
        joined([system(99.0, device="gpu"), system(99.0, device="cpu")], [0, 1])
    with pytest.raises(MeasurementError, match="different scores"):
        joined([system(99.0), dataclasses.replace(system(99.0), scores=())], [0, 1])


@pytest.mark.parametrize("margin", [0, -0.01, float("nan"), float("inf"), "1"])
def test_margin_is_checked_before_anything_runs(margin: Any) -> None:
    with pytest.raises(MeasurementError, match="margin was given as"):
        bench(lambda: pytest.fail("it ran"), margin=margin)


def test_statistic_is_checked_before_anything_runs() -> None:
    with pytest.raises(MeasurementError, match="quantile"):
        bench(lambda: pytest.fail("it ran"), statistic=Statistic("quantile", 1.5))


def test_peak_of_the_counted_operations_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(module, "peaks_of", lambda systems, threads: asked.append(threads) or [{"flops_per_s": 1e9}])

    found = bench(quick, plan=QUICK, measure_peak=True)

    assert asked == [None]
    assert found.environment["peaks"] == [{"flops_per_s": 1e9}]
    assert "peaks" not in bench(quick, plan=QUICK).environment


def test_seed_is_checked() -> None:
    with pytest.raises(InvalidInputError, match="seed"):
        bench(quick, seed=-1)
