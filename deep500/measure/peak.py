"""What this machine reaches: measured peaks of arithmetic and of memory, and the roofline they make."""

from __future__ import annotations

import functools
import itertools
import logging
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.core.texts import shown
from deep500.measure.clock import Stopwatch
from deep500.measure.environment.free_memory import free_memory_bytes
from deep500.measure.environment.probes.cpu import cpu
from deep500.measure.environment.system import System, UnreadableError
from deep500.measure.workload import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Peak", "Roofline", "measured_peak", "roofline"]

#: Floating-point operations of one multiplication with addition, for the dtypes that a BLAS multiplies matrices in.
_GEMM_DTYPES = {"float32": 2, "float64": 2, "complex64": 8, "complex128": 8}

#: Smallest and largest side of the matrices that are tried; up to the middle one in any case, however slow the start.
_SMALLEST_SIDE, _CERTAIN_SIDE, _LARGEST_SIDE = 256, 1024, 8192

#: Products of a side before the next side is tried.
_REPETITIONS = 3

#: Each array of the triad is at least so many times the last-level cache (STREAM's rule), memory permitting.
_CACHE_MULTIPLE = 4

#: Size of an array of the triad where the cache is smaller than this, or not known.
_SMALLEST_ARRAY_BYTES = 1 << 26

#: Matrices, and the three arrays of the triad, take at most this share of the memory that is free.
_MEMORY_SHARE = 0.25

#: Elements of a block of the triad: its intermediate result stays in the second-level cache, and it takes so long that
#: the interpreter's part, for which the threads wait for each other, does not count.
_BLOCK = 1 << 16

#: Passes of the triad at least.
_LEAST_PASSES = 4

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Peak:
    """What this machine reached when it was asked.

    Attributes:
        flops_per_s: Floating-point operations a second, of matrix multiplication.
        bytes_per_s: Bytes a second from and to memory, of a triad.
        dtype: Dtype of the matrices.
        threads: Threads that were used for both.
        how: How it was measured, for people.
    """

    flops_per_s: float
    bytes_per_s: float
    dtype: str
    threads: int
    how: str

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value in (("flops_per_s", self.flops_per_s), ("bytes_per_s", self.bytes_per_s)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
                raise InvalidInputError(f"The peak's {name} is {shown(value)}; accepted are positive numbers.")

    def check_dtype(self, work: Work) -> None:
        """Check that work is held against the peak of its own precision.

        Raises:
            MeasurementError: The work says that it computes in another dtype.
        """
        if work.dtype is not None and work.dtype != self.dtype:
            raise MeasurementError(
                f"Work in {work.dtype} is not held against the peak of {self.dtype}; measure that of {work.dtype}."
            )


@dataclass(frozen=True, slots=True)
class Roofline:
    """The bound that a machine sets to a piece of work.

    Attributes:
        attainable_flops_per_s: No implementation of the work can be faster than this.
        intensity_flops_per_byte: Operations per byte that is moved; infinite of work that moves none.
        bound: ``"compute"`` or ``"memory"``, whichever sets the limit.
    """

    attainable_flops_per_s: float
    intensity_flops_per_byte: float
    bound: str


def roofline(work: Work, peak: Peak) -> Roofline:
    r"""Return what is attainable for work of a known intensity.

    With :math:`F` operations and :math:`B` bytes, the intensity is :math:`I = F / B`, and attainable is
    :math:`\min(\text{peak flop/s}, I \cdot \text{peak bytes/s})`.

    Source: S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
    Architectures", Communications of the ACM 52(4), 2009.

    Args:
        work: What one run does; operations and bytes have to be known.
        peak: What the machine reached.

    Raises:
        MeasurementError: Operations or bytes are not known, both are 0, or the dtypes differ.

    Example:
        >>> roofline(Work(flops=2e9, bytes=1e9), Peak(1e11, 1e10, "float32", 1, "given"))
        Roofline(attainable_flops_per_s=20000000000.0, intensity_flops_per_byte=2.0, bound='memory')
    """
    for name, value in (("flops", work.flops), ("bytes", work.bytes)):
        if value is None:
            raise MeasurementError(f"A roofline needs the work's {name}, which this work does not know.")
    flops, moved = float(work.flops or 0), float(work.bytes or 0)
    if flops == 0 and moved == 0:
        raise MeasurementError("Work of 0 operations and 0 bytes has no intensity.")
    peak.check_dtype(work)
    intensity = flops / moved if moved else math.inf
    by_memory = intensity * peak.bytes_per_s
    bound = "memory" if by_memory < peak.flops_per_s else "compute"
    return Roofline(min(by_memory, peak.flops_per_s), intensity, bound)


def measured_peak(dtype: Any = "float32", *, duration_s: float = 0.5) -> Peak:
    """Measure what this machine reaches through NumPy, once a process for each dtype and duration.

    It is no data sheet's number: the arithmetic is the best repetition of a large square matrix multiplication with
    NumPy's BLAS and its threads, over several sizes; the bandwidth is the best repetition of STREAM's triad
    ``a = b + s * c`` in float64, in blocks and in as many threads, over arrays of four times the last-level cache. The
    triad counts 24 bytes an element, as STREAM does, and not what a cache may read before it writes. Both are lower
    bounds of what the machine can do; run it when nothing else runs.

    Source: J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers", IEEE TCCA
    Newsletter, 1995 (STREAM).

    Args:
        dtype: ``"float32"``, ``"float64"``, ``"complex64"`` or ``"complex128"``. NumPy's BLAS multiplies no others.
        duration_s: Seconds for each of the two; preparing the arrays comes on top, a second for each GB or more.

    Raises:
        InvalidInputError: NumPy's BLAS has no multiplication of this dtype, or the duration is not positive.
    """
    name = numpy_dtype(dtype).name
    if name not in _GEMM_DTYPES:
        raise InvalidInputError(
            f"A peak of {name} cannot be measured: NumPy's BLAS multiplies no such matrices, and what NumPy's own loop "
            f"reaches is not the machine's peak. Accepted are {', '.join(_GEMM_DTYPES)}."
        )
    if isinstance(duration_s, bool) or not isinstance(duration_s, (int, float)) or not 0 < duration_s < math.inf:
        raise InvalidInputError(f"The duration is {shown(duration_s)} s; accepted are positive numbers.")
    return _measured_peak(name, float(duration_s), *_blas())


@functools.cache
def _measured_peak(dtype: str, duration_s: float, threads: int, library: str) -> Peak:
    flops_per_s, side, products = _multiply(dtype, duration_s, int(_MEMORY_SHARE * free_memory_bytes()))
    bytes_per_s, triads = _measured_bandwidth(duration_s, threads)
    how = (
        f"measured on this machine with {threads} thread{'s' if threads > 1 else ''}: best of {products} products of "
        f"{dtype} matrices of side {side} by NumPy {np.__version__} with {library}; best of {triads}"
    )
    return Peak(flops_per_s, bytes_per_s, dtype, threads, how)


@functools.cache
def _measured_bandwidth(duration_s: float, threads: int) -> tuple[float, str]:
    """Return the bytes a second, and what was run for them."""
    size_bytes, note = _array_bytes(_last_level_cache_bytes(), int(_MEMORY_SHARE * free_memory_bytes()))
    bytes_per_s, passes = _triad(size_bytes, threads, duration_s)
    return bytes_per_s, f"{passes} triads over arrays of {size_bytes / 2**20:.0f} MiB{note}"


def _multiply(dtype: str, duration_s: float, free_bytes: int) -> tuple[float, int, int]:
    """Return the best rate of a product of square matrices in flop/s, the side that reached it, and how many were run.

    The side doubles while there is time and memory for a larger one; the rest of the time goes to the best side.
    """
    watch = Stopwatch()
    side, count, best_rate, best_side = _SMALLEST_SIDE, 0, 0.0, 0
    while True:
        matrices = _matrices(dtype, side)
        np.matmul(matrices[0], matrices[1], out=matrices[2])  # starts the threads and touches the memory
        rate = max(_product_rate(dtype, matrices) for _ in range(_REPETITIONS))
        count += _REPETITIONS
        if rate > best_rate:
            best_rate, best_side = rate, side
        side *= 2
        seconds_of_next = (_REPETITIONS + 1) * _GEMM_DTYPES[dtype] * side**3 / best_rate
        fits = 3 * side**2 * np.dtype(dtype).itemsize <= free_bytes
        in_time = side <= _CERTAIN_SIDE or watch.elapsed_s() + seconds_of_next <= duration_s
        if side > _LARGEST_SIDE or not fits or not in_time:
            break
    matrices = _matrices(dtype, best_side)
    while watch.elapsed_s() < duration_s:
        best_rate = max(best_rate, _product_rate(dtype, matrices))
        count += 1
    return best_rate, best_side, count


def _product_rate(dtype: str, matrices: tuple[NDArray[Any], ...]) -> float:
    left, right, product = matrices
    watch = Stopwatch()
    np.matmul(left, right, out=product)
    return float(_GEMM_DTYPES[dtype] * len(left) ** 3 / watch.elapsed_s())


def _matrices(dtype: str, side: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return two matrices of repeated random tiles, which are made in a tenth of the time, and one for the product."""
    stream = random_stream(0, "peak")
    tiles = side // _SMALLEST_SIDE
    left, right = (
        np.tile(stream.uniform(-1, 1, (_SMALLEST_SIDE, _SMALLEST_SIDE)).astype(dtype), (tiles, tiles)) for _ in range(2)
    )
    return left, right, np.empty_like(left)


def _triad(size_bytes: int, threads: int, duration_s: float) -> tuple[float, int]:
    """Return the best rate of ``a = b + s * c`` in bytes a second, and how many passes were run."""
    elements = max(1, size_bytes // 8)
    arrays = [np.empty(elements) for _ in range(3)]
    bounds = [elements * part // threads for part in range(threads + 1)]
    parts = [tuple(array[low:high] for array in arrays) for low, high in itertools.pairwise(bounds)]
    with ThreadPoolExecutor(threads) as pool:
        # Each thread touches its part first, so that the pages lie in its own memory.
        list(pool.map(_fill, parts))
        total, passes, fastest_s = Stopwatch(), 0, math.inf
        while passes < _LEAST_PASSES or total.elapsed_s() < duration_s:
            watch = Stopwatch()
            list(pool.map(_triad_of_part, parts))
            fastest_s = min(fastest_s, watch.elapsed_s())
            passes += 1
    return 3 * 8 * elements / fastest_s, passes


def _fill(part: tuple[NDArray[np.float64], ...]) -> None:
    for number, array in enumerate(part):
        array.fill(number)


def _triad_of_part(part: tuple[NDArray[np.float64], ...]) -> None:
    result, left, right = part
    for low in range(0, len(result), _BLOCK):
        block = slice(low, low + _BLOCK)
        np.multiply(right[block], 3.0, out=result[block])
        np.add(result[block], left[block], out=result[block])


def _array_bytes(cache_bytes: int | None, free_bytes: int) -> tuple[int, str]:
    """Return the size of an array of the triad, and what to say of it against the cache."""
    wanted = max(_SMALLEST_ARRAY_BYTES, _CACHE_MULTIPLE * (cache_bytes or 0))
    size = min(wanted, free_bytes // 3)
    if cache_bytes is None:
        return size, " (the size of the last-level cache is not known)"
    return size, f", {size / cache_bytes:.2g} times the last-level cache"


def _last_level_cache_bytes() -> int | None:
    """Return the size of all last-level caches together, ``None`` where it cannot be read."""
    try:
        caches = cpu(System())["caches"].read()
    except UnreadableError as error:
        _logger.debug("The size of the caches is not known: %s", error)
        return None
    level = max(cache["level"] for cache in caches)
    return int(sum(cache["size_bytes"] * cache["count"] for cache in caches if cache["level"] == level))


def _blas() -> tuple[int, str]:
    """Return the threads that NumPy's BLAS uses, and what it is called."""
    import threadpoolctl

    found = [entry for entry in threadpoolctl.threadpool_info() if entry["user_api"] == "blas"]
    found.sort(key=lambda entry: "numpy" not in entry["filepath"])  # SciPy may have loaded one of its own
    if not found:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, "its BLAS"
    return int(found[0]["num_threads"]), f"{found[0]['internal_api']} {found[0].get('version') or ''}".rstrip()
