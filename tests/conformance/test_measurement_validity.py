"""The engine finds what is there, and nothing where there is nothing: the small form of the benchmark of this name."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from benchmarks.measurement_validity import BLOCKS, KERNEL, Kernel, watched
from deep500.core.errors import Deep500Error
from deep500.measure.clock import Stopwatch
from deep500.measure.results.comparing import compare
from deep500.measure.sampling import SamplingPlan, bench
from deep500.measure.statistics import Verdict, paired_log_ratio
from deep500.measure.workload import open_workload


def test_kernel_against_itself_is_rarely_faster_or_slower() -> None:
    """40 comparisons in this process; with a true rate of 5 %, more than 7 errors come about once in 1400 tests."""
    plan = SamplingPlan(minimum_time_s=0.0, warm_up=3, minimum_samples=30, maximum_samples=30)
    verdicts, kernel = [], Kernel(20)
    for seed in range(40):
        found = bench(kernel, kernel, plan=plan, seed=seed)
        one, other = (system.metric().launches[0].samples for system in found.systems)
        verdicts.append(paired_log_ratio(one, other).verdict)

    assert sum(verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in verdicts) <= 7


def test_slowdown_is_found_over_launches() -> None:
    """A quarter more work, for other tests may run beside; 3 % are the benchmark's, on a quiet machine."""
    plan = SamplingPlan(minimum_time_s=0.2, time_limit_s=1.0, warm_up=20, threads=1)
    found = bench(KERNEL, f"{KERNEL},blocks={BLOCKS * 125 // 100}", launches=7, plan=plan, labels=["base", "slower"])

    row = compare([(found, system) for system in found.systems]).rows[0]

    assert row.verdict is Verdict.SLOWER
    assert row.interval is not None
    assert 1.1 < row.ratio < 1.4


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_overhead_is_small_and_honest() -> None:
    workload = open_workload("model:lenet@pytorch")
    inside_s, workload.run = watched(workload.run)  # type: ignore[method-assign]
    watch = Stopwatch()

    found = bench(workload)

    total_s = watch.elapsed_s()
    process = found.processes[0]
    once_s = found.environment["elapsed_s"] + process.description_s
    assert process.engine_s < 0.05 * process.run_s
    assert total_s - inside_s() - once_s < 0.05 * inside_s()
    assert process.run_s == pytest.approx(inside_s(), rel=0.05)


def test_tampered_samples_are_refused_on_reading(tmp_path: Any) -> None:
    from deep500.measure.results.files import read_measurement, write_measurement

    path = tmp_path / "r.json"
    write_measurement(bench(Kernel(1), plan=SamplingPlan(minimum_time_s=0.0, warm_up=1)), path)
    path.write_text(path.read_text().replace('"matrix products"', '"matrix quotients"'))

    with pytest.raises(Deep500Error, match="workload"):
        read_measurement(path)
