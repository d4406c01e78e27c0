from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure import peak
from deep500.measure.environment.system import UnreadableError
from deep500.measure.peak import Peak, Roofline, measured_peak, roofline
from deep500.measure.workload import Work

PEAK = Peak(1e11, 1e10, "float32", 2, "given")
MEBIBYTE = 2**20


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Small arrays, so that a measurement takes no time; and a list of what was measured."""
    done: list[str] = []
    multiply, triad = peak._multiply, peak._triad
    monkeypatch.setattr(peak, "_SMALLEST_SIDE", 16)
    monkeypatch.setattr(peak, "_CERTAIN_SIDE", 32)
    monkeypatch.setattr(peak, "_LARGEST_SIDE", 64)
    monkeypatch.setattr(peak, "_array_bytes", lambda cache, free: (MEBIBYTE, ", 9 times the last-level cache"))
    monkeypatch.setattr(peak, "_multiply", lambda *a: (done.append("multiply"), multiply(*a))[1])
    monkeypatch.setattr(peak, "_triad", lambda *a: (done.append("triad"), triad(*a))[1])
    peak._measured_peak.cache_clear()
    peak._measured_bandwidth.cache_clear()
    yield done
    peak._measured_peak.cache_clear()
    peak._measured_bandwidth.cache_clear()


def test_peak_says_what_was_reached_and_how(small: list[str]) -> None:
    found = measured_peak("float64", duration_s=0.01)

    assert 0 < found.flops_per_s < 1e16
    assert 0 < found.bytes_per_s < 1e14
    assert found.dtype == "float64"
    assert found.threads >= 1
    assert "measured on this machine" in found.how
    assert re.search("products of float64 matrices of side (16|32|64) by NumPy", found.how)
    assert f"NumPy {np.__version__}" in found.how
    assert "9 times the last-level cache" in found.how


def test_peak_is_measured_once_a_process_for_each_dtype(small: list[str]) -> None:
    first = measured_peak("float32", duration_s=0.01)

    assert measured_peak(np.float32, duration_s=0.01) is first
    assert small == ["multiply", "triad"]
    assert measured_peak("float64", duration_s=0.01).bytes_per_s == first.bytes_per_s
    assert small == ["multiply", "triad", "multiply"]
    measured_peak("float64", duration_s=0.02)
    assert small == ["multiply", "triad", "multiply", "multiply", "triad"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "int64", "bool", "float8_e4m3fn", "longdouble"])
def test_dtypes_without_a_matrix_multiplication_are_refused(dtype: str) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot be measured.*Accepted are float32, float64, complex64"):
        measured_peak(dtype)


@pytest.mark.parametrize("duration_s", [0, -1, math.nan, math.inf, True, "1"])
def test_durations_that_are_not_accepted(duration_s: Any) -> None:
    with pytest.raises(InvalidInputError, match="duration is"):
        measured_peak("float32", duration_s=duration_s)


class SteppingWatch:
    """Each product or pass takes a second."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.asked = 0

    def elapsed_s(self) -> float:
        self.asked += 1
        return float(self.asked)


@pytest.mark.parametrize(("dtype", "operations"), [("float32", 2), ("float64", 2), ("complex64", 8), ("complex128", 8)])
def test_rate_of_a_product_counts_its_operations(monkeypatch: pytest.MonkeyPatch, dtype: str, operations: int) -> None:
    monkeypatch.setattr(peak, "Stopwatch", SteppingWatch)
    matrices = peak._matrices(dtype, 256)

    assert {array.dtype.name for array in matrices} == {dtype}
    assert peak._product_rate(dtype, matrices) == operations * 256**3
    np.testing.assert_allclose(matrices[2], matrices[0] @ matrices[1], rtol=1e-3, atol=1e-3)


def test_sides_double_up_to_the_largest_and_the_best_rate_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {256: 5.0, 512: 9e12, 1024: 7e12, 2048: 3e12, 4096: 2e12, 8192: 1e12}
    monkeypatch.setattr(peak, "_matrices", lambda dtype, side: (np.zeros(side),) * 3)
    monkeypatch.setattr(np, "matmul", lambda *a, **k: None)
    monkeypatch.setattr(peak, "_product_rate", lambda dtype, matrices: rates[len(matrices[0])])
    monkeypatch.setattr(peak, "Stopwatch", SteppingWatch)

    assert peak._multiply("float32", 100.0, 2**40)[:2] == (9e12, 512)
    # A slow start does not keep it from the sides up to 1024, and too little memory does.
    assert peak._multiply("float32", 0.001, 2**40)[:2] == (9e12, 512)
    assert peak._multiply("float32", 100.0, 3 * 4 * 300**2)[:2] == (5.0, 256)


def test_triad_computes_what_it_times(monkeypatch: pytest.MonkeyPatch) -> None:
    part = tuple(np.full(200_001, value) for value in (0.0, 1.0, 2.0))

    peak._triad_of_part(part)

    assert set(part[0]) == {7.0}
    assert (set(part[1]), set(part[2])) == ({1.0}, {2.0})
    monkeypatch.setattr(peak, "Stopwatch", SteppingWatch)
    for threads in (1, 3):
        assert peak._triad(8 * 1000, threads, 0.5) == (24 * 1000, 4)
        assert peak._triad(8 * 1000, threads, 7.0)[1] == 4 + 6  # the clock is not asked before the least number


def test_arrays_are_far_larger_than_the_cache_where_memory_permits() -> None:
    assert peak._array_bytes(256 * MEBIBYTE, 2**40) == (1024 * MEBIBYTE, ", 4 times the last-level cache")
    assert peak._array_bytes(MEBIBYTE, 2**40) == (64 * MEBIBYTE, ", 64 times the last-level cache")
    assert peak._array_bytes(256 * MEBIBYTE, 384 * MEBIBYTE) == (128 * MEBIBYTE, ", 0.5 times the last-level cache")
    assert peak._array_bytes(None, 2**40) == (64 * MEBIBYTE, " (the size of the last-level cache is not known)")


def test_cache_is_that_of_the_machine_or_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    caches = [
        {"level": 2, "type": "Unified", "size_bytes": 100, "count": 8},
        {"level": 3, "type": "Unified", "size_bytes": 1000, "count": 2},
    ]

    class Caches:
        def read(self) -> Any:
            return caches

    monkeypatch.setattr(peak, "cpu", lambda system: {"caches": Caches()})
    assert peak._last_level_cache_bytes() == 2000

    def unreadable(*_: Any) -> Any:
        raise UnreadableError("no such folder")

    monkeypatch.setattr(Caches, "read", unreadable)
    assert peak._last_level_cache_bytes() is None


def test_threads_are_those_of_numpys_own_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    import threadpoolctl

    others = {"user_api": "blas", "internal_api": "openblas", "num_threads": 7, "filepath": "/scipy.libs/b.so"}
    own = {**others, "num_threads": 3, "filepath": "/numpy.libs/a.so", "version": "1.2"}
    openmp = {**others, "user_api": "openmp"}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [openmp, others, own])
    assert peak._blas() == (3, "openblas 1.2")
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [others])
    assert peak._blas() == (7, "openblas")
    monkeypatch.setattr(threadpoolctl, "threadpool_info", list)
    assert peak._blas()[0] >= 1


@given(st.floats(0, 1e15), st.floats(1, 1e15))
def test_roofline_is_the_lower_of_both_bounds(flops: float, moved: float) -> None:
    found = roofline(Work(flops=flops, bytes=moved), PEAK)

    assert found.intensity_flops_per_byte == flops / moved
    assert found.attainable_flops_per_s == pytest.approx(min(1e11, flops / moved * 1e10))
    assert found.bound == ("memory" if flops / moved * 1e10 < 1e11 else "compute")


def test_roofline_at_its_ends() -> None:
    assert roofline(Work(flops=5, bytes=0), PEAK) == Roofline(1e11, math.inf, "compute")
    assert roofline(Work(flops=0, bytes=5), PEAK) == Roofline(0.0, 0.0, "memory")
    assert roofline(Work(flops=10, bytes=1), PEAK) == Roofline(1e11, 10.0, "compute")


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (Work(bytes=1), "needs the work's flops"),
        (Work(flops=1), "needs the work's bytes"),
        (Work(flops=0, bytes=0), "no intensity"),
        (Work(flops=1, bytes=1, dtype="float16"), "Work in float16 is not held against the peak of float32"),
    ],
)
def test_work_without_a_roofline(work: Work, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        roofline(work, PEAK)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, None, True])
def test_peaks_that_are_none(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="flops_per_s is"):
        Peak(value, 1.0, "float32", 1, "")
    with pytest.raises(InvalidInputError, match="bytes_per_s is"):
        Peak(1.0, value, "float32", 1, "")
