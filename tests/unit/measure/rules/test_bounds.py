from __future__ import annotations

import pytest

from deep500.measure.workload import Work
from tests.unit.measure.rules.support import measurement, metric, recipe, system, verdict_of


def document(work, *peaks, spec="op:Gemm", **parts):
    result = measurement(system(spec, work=work, **parts))
    result["environment"]["peaks"] = list(peaks)
    return result


def peak(**changes):
    return {"flops_per_s": 1e10, "bytes_per_s": 1e9, "dtype": "float32", **changes}


@pytest.mark.parametrize("work", [Work(), Work(items=5), Work(flops=0, bytes=0)])
def test_work_that_is_not_counted_has_no_bound(work):
    assert verdict_of("bounds", document(work, peak()))[0] == "not applicable"


def test_the_share_of_the_bound_is_computed():
    _, reason = verdict_of("bounds", document(Work(flops=1e6, dtype="float32"), peak()))

    assert "takes 0.0009907 s, and the peaks allow 0.0001 s (10.09% of it)" in reason


def test_work_without_operations_is_bounded_by_memory():
    _, reason = verdict_of("bounds", document(Work(bytes=5e5), peak()))

    assert "the peaks allow 0.0005 s" in reason


@pytest.mark.parametrize(
    ("work", "peaks"),
    [
        (Work(flops=1e6, dtype="float32"), []),
        (Work(flops=1e6, dtype="float32"), [peak(dtype="float64")]),
        (Work(flops=1e6, dtype="float32"), [peak(flops_per_s=None)]),
        (Work(flops=1e6, dtype="float32"), [peak(flops_per_s=-1.0)]),
        (Work(bytes=1e6), [peak(bytes_per_s="fast")]),
    ],
)
def test_work_without_a_peak_of_its_dtype_breaks_the_rule(work, peaks):
    assert verdict_of("bounds", document(work, *peaks))[0] == "broken"


def test_a_peak_that_is_passed_is_no_bound():
    verdict, reason = verdict_of("bounds", document(Work(flops=1e9, dtype="float32"), peak()))

    assert verdict == "broken"
    assert "no bound" in reason


def test_a_peak_of_the_cpu_does_not_bound_an_accelerator():
    work = Work(flops=1e6, dtype="float32")
    assert verdict_of("bounds", document(work, peak(), factors={"device": "gpu:0"}))[0] == "broken"
    assert verdict_of("bounds", document(work, peak(device="gpu:0"), factors={"device": "gpu:0"}))[0] == "obeyed"


def test_units_of_time_are_read():
    milliseconds = metric(unit="ms", median_s=1.0)
    _, reason = verdict_of("bounds", document(Work(flops=1e6, dtype="float32"), peak(), metrics=(milliseconds,)))

    assert "takes 0.0009907 s" in reason


def test_a_recipe_does_not_count_its_work():
    assert verdict_of("bounds", recipe())[0] == "not applicable"
