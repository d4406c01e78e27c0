from __future__ import annotations

from typing import Any

import pytest

from deep500.core.errors import InvalidInputError
from deep500.measure import peak
from deep500.measure.results.document import System
from deep500.measure.sampling.peaks import peaks_of
from deep500.measure.workload import Work


def system(dtype: str | None, flops: float | None = 1e6, device: str = "cpu") -> System:
    return System("a", "a", {}, {"device": device}, None, None, Work(flops=flops, dtype=dtype), ())


def test_each_dtype_is_measured_once_with_the_threads_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(dtype: str) -> Any:
        import threadpoolctl

        threads = {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}
        if dtype == "bfloat16":
            raise InvalidInputError("NumPy multiplies none")
        return peak.Peak(1e9, 2e9, dtype, max(threads, default=0), "made up")

    monkeypatch.setattr(peak, "measured_peak", measured)

    found = peaks_of([system("float32"), system("float32"), system("float64"), system("bfloat16")], threads=1)

    assert [(entry["dtype"], entry["flops_per_s"], entry["device"]) for entry in found] == [
        ("float32", 1e9, "cpu"),
        ("float64", 1e9, "cpu"),
    ]
    assert {entry["threads"] for entry in found} <= {0, 1}


@pytest.mark.parametrize("other", [system(None), system("float32", None), system("float32", device="gpu:0")])
def test_what_has_no_peak_here_is_left_out(other: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "measured_peak", lambda dtype: pytest.fail("it was measured"))

    assert peaks_of([other]) == []
