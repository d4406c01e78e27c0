"""Does the engine find what is there, and nothing where there is nothing?

Three questions, each asked with ``deep500.measure`` alone, as a user would:

* **A/A.** A kernel is compared with itself, interleaved, many times. How often is the verdict "faster" or "slower"?
  The true rate of an exact 95 % interval is at most 5 %; of 250 comparisons at most 7 % may err. With a rate of 5 %,
  18 or more of 250 come about in 8 % of all experiments.
* **Planted.** A kernel that does 3 % more work, of 2 ms, is compared with the original, with 10 launches each time. How
  often is it found to be slower? At least 80 % of 50 comparisons.
* **Overhead.** What does measuring ``model:lenet@pytorch`` cost beside the runs? Less than 5 %, by the engine's own
  account and by a clock outside of it.

    python -m benchmarks.measurement_validity
    python -m benchmarks.measurement_validity planted --comparisons 10
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np

from deep500.measure.clock import Stopwatch
from deep500.measure.results.comparing import compare
from deep500.measure.sampling import SamplingPlan, bench
from deep500.measure.statistics import Verdict, paired_log_ratio
from deep500.measure.workload import Workload, open_workload

#: 100 products of square matrices, of about 20 us each: 2 ms. BLAS copies them to where it wants them, so that it does
#: not matter where a process puts them.
BLOCKS = 100
SIDE = 80

PLAN = SamplingPlan(minimum_time_s=0.4, time_limit_s=1.0, threads=1)


class Kernel(Workload):
    """A numeric kernel whose amount of work can be set to a hundredth."""

    def __init__(self, blocks: int = BLOCKS) -> None:
        self._blocks = blocks
        self._matrix = np.random.default_rng(0).standard_normal((SIDE, SIDE))
        self._product = np.empty((SIDE, SIDE))

    @property
    def identity(self) -> dict[str, Any]:
        return {"problem": "matrix products", "side": SIDE, "blocks": BLOCKS}

    @property
    def factors(self) -> dict[str, Any]:
        return {"blocks": self._blocks}

    def run(self) -> None:
        for _ in range(self._blocks):
            np.matmul(self._matrix, self._matrix, out=self._product)


KERNEL = "benchmarks.measurement_validity:Kernel"


def verdict(other: str, launches: int, seed: int) -> tuple[str, float]:
    """Compare another kernel with the base; return the verdict and the ratio."""
    measurement = bench(KERNEL, other, launches=launches, plan=PLAN, seed=seed, labels=["base", "other"])
    row = compare([(measurement, system) for system in measurement.systems]).rows[0]
    return row.verdict.value, row.ratio


def in_process_verdict(seed: int, pairs: int) -> str:
    """Compare a kernel with itself in this process, over pairs of samples.

    It is one object: two, whose arrays lie elsewhere, differ in one process, and the same way in each sample of it. No
    verdict of the engine is made of one process, for that reason.
    """
    kernel = Kernel()
    plan = SamplingPlan(minimum_time_s=0.0, warm_up=3, minimum_samples=pairs, maximum_samples=pairs)
    measurement = bench(kernel, kernel, plan=plan, seed=seed, labels=["base", "other"])
    base, other = (system.metric().launches[0].samples for system in measurement.systems)
    return paired_log_ratio(other, base).verdict.value


def same(comparisons: int, launches: int | None = None) -> bool:
    """A against A: in one process, or over launches."""
    if launches is None:
        what, found = "in one process, 30 pairs", [in_process_verdict(seed, 30) for seed in range(comparisons)]
    else:
        what, found = f"{launches} launches", [verdict(KERNEL, launches, seed)[0] for seed in range(comparisons)]
    wrong = sum(answer in (Verdict.FASTER, Verdict.SLOWER) for answer in found)
    print(f"| A/A, {what} | {comparisons} | {wrong} wrong | {wrong / comparisons:.1%} | <= 7 % |", flush=True)
    return wrong <= 0.07 * comparisons


def planted(comparisons: int, launches: int) -> bool:
    """Three blocks more on a hundred."""
    answers = [verdict(f"{KERNEL},blocks={BLOCKS + 3}", launches, seed) for seed in range(comparisons)]
    found = sum(answer == Verdict.SLOWER.value for answer, _ in answers)
    ratios = sorted(ratio for _, ratio in answers)
    print(
        f"| 3 % more work, {launches} launches | {comparisons} | {found} found | {found / comparisons:.1%} | >= 80 % | "
        f"ratios {ratios[0]:.4f} .. {np.median(ratios):.4f} .. {ratios[-1]:.4f}",
        flush=True,
    )
    return found >= 0.8 * comparisons


def watched(run: Callable[[], Any]) -> tuple[Callable[[], float], Callable[[], Any]]:
    """Return a function that tells the seconds of all runs so far, and the runs with a stopwatch around each."""
    total_s = 0.0

    def with_stopwatch() -> Any:
        nonlocal total_s
        watch = Stopwatch()
        result = run()
        total_s += watch.elapsed_s()
        return result

    return lambda: total_s, with_stopwatch


def overhead(spec: str = "model:lenet@pytorch") -> bool:
    """Compare the engine's account of its costs with a clock around the runs and around the engine."""
    workload = open_workload(spec)
    inside_s, workload.run = watched(workload.run)  # type: ignore[method-assign]
    watch = Stopwatch()
    measurement = bench(workload)
    total_s = watch.elapsed_s()
    process = measurement.processes[0]
    once_s = measurement.environment["elapsed_s"] + process.description_s
    own = process.engine_s / process.run_s
    outside = (total_s - inside_s() - once_s) / inside_s()
    print(
        f"| overhead of {spec} | runs {inside_s():.2f} s | engine's account {own:.2%} | from outside {outside:.2%} "
        f"| < 5 % | environment record and accuracy check, once, {once_s * 1e3:.0f} ms |",
        flush=True,
    )
    return own < 0.05 and outside < 0.05


QUESTIONS: dict[str, Callable[[int | None, int], bool]] = {
    "overhead": lambda comparisons, launches: overhead(),
    "same": lambda comparisons, launches: same(comparisons or 250),
    "planted": lambda comparisons, launches: planted(comparisons or 50, launches),
    "same-launches": lambda comparisons, launches: same(comparisons or 250, launches),
}


def main() -> int:
    """Ask what the arguments name; exit with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=f"of {', '.join(QUESTIONS)}; default all")
    parser.add_argument("--comparisons", type=int, help="default 50 planted, 250 A/A")
    parser.add_argument("--launches", type=int, default=10)
    arguments = parser.parse_args()
    unknown = [question for question in arguments.questions if question not in QUESTIONS]
    if unknown:
        parser.error(f"there is no question {unknown[0]!r}; there are {', '.join(QUESTIONS)}")
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores\n")
    passed = True
    for question in arguments.questions or QUESTIONS:
        passed = QUESTIONS[question](arguments.comparisons, arguments.launches) and passed
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
