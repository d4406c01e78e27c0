from __future__ import annotations

import pytest

from deep500.measure.workload import Work
from tests.unit.measure.rules.support import measurement, recipe, system, verdict_of


def document(dtype, peaks, flops=1e6):
    result = measurement(system(work=Work(flops=flops, dtype=dtype)))
    result["environment"]["peaks"] = [{"flops_per_s": 1e10, "dtype": peak} for peak in peaks]
    return result


@pytest.mark.parametrize(
    ("dtype", "peaks", "verdict"),
    [
        ("float32", ["float32"], "obeyed"),
        ("float32", ["float64", "float32"], "obeyed"),
        ("float64", ["float32"], "broken"),
        ("float64", [None], "broken"),
        (None, ["float32"], "broken"),
        ("float32", [], "not applicable"),
    ],
)
def test_the_peak_has_the_dtype_of_the_work(dtype, peaks, verdict):
    assert verdict_of("precision_specific_peak", document(dtype, peaks))[0] == verdict


def test_work_without_operations_has_no_precision():
    assert verdict_of("precision_specific_peak", document(None, ["float32"], flops=None))[0] == "not applicable"
    assert verdict_of("precision_specific_peak", recipe())[0] == "not applicable"
