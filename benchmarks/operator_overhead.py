"""What it costs to call a native operator of Deep500, beside what the framework has itself.

The operator is the cube, ``native_ops.IPow(power=3)``; the framework's own are ``x**3`` and ``x * x * x``. All run in
the same processes, in random order, round by round; what is compared are the launches, each by the median ratio of its
rounds. The targets are those of the milestone:

* **calls** of 16 elements: PyTorch without gradients, and forward with backward, at most 1.0 of ``x**3``; TensorFlow
  eager at most 1.0, in a ``tf.function`` at most 1.1; NumPy at most 1 us. Forward with backward of TensorFlow and one
  call under ``torch.compile`` are reported.
* **throughput** at 2**24 elements: at least 0.95 of ``x**3`` and of ``x * x * x``.
* **load**: the compiled operator out of the cache, in a fresh process, in at most 20 ms. Imports are not part of it.

    python -m benchmarks.operator_overhead
    python -m benchmarks.operator_overhead calls --framework pytorch --launches 6
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.frameworks import FRAMEWORKS
from deep500.measure.results.comparing import compare
from deep500.measure.results.summary import Summary, summarise
from deep500.measure.sampling import SamplingPlan, bench
from deep500.measure.statistics.quantiles import Interval
from deep500.measure.workload import Work, Workload

SMALL, LARGE = 16, 2**24
POWER, PRODUCT, OURS = "x**3", "x*x*x", "deep500"

Function = Callable[[Any], Any]


def cube_of(framework: str, implementation: str) -> Function:
    """Return the cube as a function of a framework's tensors."""
    if implementation == POWER:
        return lambda x: x**3
    if implementation == PRODUCT:
        return lambda x: x * x * x
    from native_ops import IPow

    found: Function = FRAMEWORKS.get(framework).custom_op(IPow(power=3))
    return found


class Cube(Workload):
    """One call of the cube.

    What is run is a plain function of the user's form, such as ``lambda: x**3``: nothing of this class is in its time.
    """

    def __init__(self, framework: str, mode: str, implementation: str, elements: int) -> None:
        self._said = {"framework": framework, "implementation": implementation}
        self._mode, self._elements = mode, elements
        values = np.random.default_rng(0).uniform(0.5, 2.0, elements).astype(np.float32)
        self.run = RUNS[framework](mode, implementation, values)  # type: ignore[method-assign]
        some = slice(None, None, max(1, elements // 1000))
        found, x = np.asarray(self.run())[some], values[some]
        if not np.allclose(found, 3 * x * x if mode == "gradient" else x * x * x, rtol=1e-5):
            raise MeasurementError(f"{implementation} of {framework} does not compute what it should in mode {mode}.")

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"problem": "cube", "mode": self._mode, "elements": self._elements, "dtype": "float32"}

    @property
    def factors(self) -> Mapping[str, Any]:
        return self._said

    @property
    def work(self) -> Work:
        return Work(items=self._elements, item="element", bytes=8 * self._elements, dtype="float32")

    def run(self) -> Any:
        raise AssertionError("replaced by the function that is measured")


def applied(implementation: str, cube: Function, x: Any) -> Callable[[], Any]:
    """Return a call without a layer that the user would not write."""
    if implementation == POWER:
        return lambda: x**3
    if implementation == PRODUCT:
        return lambda: x * x * x
    return lambda: cube(x)


def numpy_run(mode: str, implementation: str, x: np.ndarray) -> Callable[[], Any]:
    return applied(implementation, cube_of("reference", implementation), x)


def pytorch_run(mode: str, implementation: str, values: np.ndarray) -> Callable[[], Any]:
    import torch

    torch.set_grad_enabled(mode == "gradient")
    cube, x = cube_of("pytorch", implementation), torch.from_numpy(values)
    if mode == "gradient":
        gradient, forward = torch.ones_like(x), applied(implementation, cube, x.requires_grad_())
        return lambda: torch.autograd.grad(forward(), x, gradient)[0]
    if mode == "compiled":
        compiled = torch.compile((lambda x: cube(x)) if implementation == OURS else cube, fullgraph=True)
        return lambda: compiled(x)
    return applied(implementation, cube, x)


def tensorflow_run(mode: str, implementation: str, values: np.ndarray) -> Callable[[], Any]:
    import tensorflow as tf

    cube, x = cube_of("tensorflow", implementation), tf.constant(values)
    forward = applied(implementation, cube, x)

    def differentiate() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = forward()
        return tape.gradient(y, x)

    if mode == "gradient":
        return differentiate
    if mode == "function":
        traced = tf.function(cube, autograph=False)
        return lambda: traced(x)
    return forward


RUNS = {"numpy": numpy_run, "pytorch": pytorch_run, "tensorflow": tensorflow_run}


class Load(Workload):
    """The first use of a compiled operator in a process: from the cache, all modules imported."""

    def __init__(self, until: str) -> None:
        import native_ops
        from deep500.operators.custom import compiling  # noqa: F401 - an import that is not to be timed
        from deep500.operators.native import binding  # noqa: F401

        self._until, self._kind = until, native_ops.IPow
        self._x = np.ones(SMALL, np.float32)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"problem": "load of a compiled operator", "until": self._until}

    @property
    def runs_per_launch(self) -> int:
        return 1

    def run(self) -> Any:
        op = self._kind(power=3)
        return op.library if self._until == "library" else op(self._x)


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """What is allowed, and a line of the table."""

    limit: float | None
    is_lowest: bool = False

    def judge(self, value: float) -> tuple[str, bool]:
        """Return the cells of the table, and whether the value passes."""
        if self.limit is None:
            return "reported |", True
        sign = ">=" if self.is_lowest else "<="
        passes = value >= self.limit if self.is_lowest else value <= self.limit
        return f"{sign} {self.limit:g} | {'met' if passes else '**missed**'}", passes


#: Calls of 16 elements: framework, mode, and the highest ratio to x**3.
CALLS = [
    ("pytorch", "no_grad", Target(1.0)),
    ("pytorch", "gradient", Target(1.0)),
    ("pytorch", "compiled", Target(None)),
    ("tensorflow", "eager", Target(1.0)),
    ("tensorflow", "function", Target(1.1)),
    ("tensorflow", "gradient", Target(None)),
]

#: Microseconds that a call with NumPy arrays may take.
NUMPY_LIMIT_US = 1.0

#: Milliseconds that a cached operator may take to load.
LOAD_LIMIT_MS = 20.0

#: Smallest throughput relative to the framework's own.
THROUGHPUT = Target(0.95, is_lowest=True)


def spec(framework: str, mode: str, implementation: str, elements: int) -> str:
    return (
        f"benchmarks.operator_overhead:Cube,framework={framework},mode={mode},"
        f"implementation={implementation!r},elements={elements}"
    )


def between(interval: Interval | None, factor: float = 1.0, digits: int = 3) -> str:
    if interval is None:
        return "none"
    return f"{interval.low * factor:.{digits}f} .. {interval.high * factor:.{digits}f}"


def call(framework: str, mode: str, target: Target, launches: int, plan: SamplingPlan) -> bool:
    """Compare one kind of call with the framework's own."""
    texts = [spec(framework, mode, implementation, SMALL) for implementation in (POWER, OURS)]
    if mode == "compiled":  # which takes seconds; it is done once a process
        plan = replace(plan, builds=1)
    measurement = bench(*texts, launches=launches, plan=plan, pairing="samples", labels=[POWER, OURS])
    found = compare([(measurement, system) for system in measurement.systems])
    row, base = found.rows[0], found.base
    verdict, passes = target.judge(row.ratio)
    print(
        f"| {framework}, {mode} | {row.system.absolute.estimate * 1e6:.2f} | {base.absolute.estimate * 1e6:.2f} | "
        f"{row.ratio:.3f} | {between(row.interval)} | {verdict} |",
        flush=True,
    )
    return passes


def numpy_call(launches: int, plan: SamplingPlan) -> bool:
    """Time a call with NumPy arrays, whose target is absolute."""
    labels = [OURS, POWER, PRODUCT]
    texts = [spec("numpy", "eager", implementation, SMALL) for implementation in labels]
    measurement = bench(*texts, launches=launches, plan=plan, pairing="samples", labels=labels)
    ours, power, product = (summarise(measurement.system(label).metric()) for label in labels)
    verdict, passes = Target(NUMPY_LIMIT_US).judge(ours.estimate * 1e6)
    print(
        f"| numpy, in us | {ours.estimate * 1e6:.3f} | {power.estimate * 1e6:.2f} ({PRODUCT}: "
        f"{product.estimate * 1e6:.2f}) | {ours.estimate / power.estimate:.3f} | {between(ours.interval, 1e6)} | "
        f"{verdict} |",
        flush=True,
    )
    return passes


def throughput(framework: str, launches: int, plan: SamplingPlan) -> bool:
    """Compare the throughput of large tensors with that of the framework's own operators."""
    mode, labels = {"pytorch": "no_grad"}.get(framework, "eager"), [OURS, POWER, PRODUCT]
    texts = [spec(framework, mode, implementation, LARGE) for implementation in labels]
    measurement = bench(*texts, launches=launches, plan=plan, pairing="samples", labels=labels)
    found = compare([(measurement, system) for system in measurement.systems])
    passed = True
    for row in found.rows:  # time of the framework's own over time of ours: the ratio of the throughputs
        verdict, passes = THROUGHPUT.judge(row.ratio)
        passed = passed and passes
        print(
            f"| {framework} | {found.base.absolute.estimate * 1e3:.2f} | {row.system.label} "
            f"{row.system.absolute.estimate * 1e3:.2f} | {row.ratio:.3f} | {between(row.interval)} | {verdict} |",
            flush=True,
        )
    return passed


def load(launches: int, until: str) -> bool:
    """Time the first use in fresh processes, after the library was compiled."""
    text = f"benchmarks.operator_overhead:Load,until={until!r}"
    summary: Summary = summarise(bench(text, launches=launches).systems[0].metric())
    verdict, passes = Target(LOAD_LIMIT_MS).judge(summary.estimate * 1e3)
    print(
        f"| until {until} | {summary.estimate * 1e3:.2f} | {between(summary.interval, 1e3, 2)} | {launches} | "
        f"{verdict} |",
        flush=True,
    )
    return passes


def measure_calls(frameworks: list[str], launches: int, plan: SamplingPlan) -> bool:
    print(f"\nCalls, {SMALL} elements of float32:\n")
    print("| call | Deep500, us | x**3, us | ratio | interval | target | |\n|---|---|---|---|---|---|---|")
    passed = [call(*case, launches, plan) for case in CALLS if case[0] in frameworks]
    if "numpy" in frameworks:
        passed.append(numpy_call(launches, plan))
    return all(passed)


def measure_throughput(frameworks: list[str], launches: int, plan: SamplingPlan) -> bool:
    print(f"\nThroughput, {LARGE} elements of float32:\n")
    print("| framework | Deep500, ms | own, ms | ratio | interval | target | |\n|---|---|---|---|---|---|---|")
    passed = [throughput(framework, launches, plan) for framework in frameworks]
    return all(passed)


def measure_load(frameworks: list[str], launches: int, plan: SamplingPlan) -> bool:
    from native_ops import IPow

    IPow(power=3)(np.ones(SMALL, np.float32))  # compiles what is not in the cache
    print("\nLoad of a compiled operator in a fresh process:\n")
    print("| measured | ms | interval | launches | target | |\n|---|---|---|---|---|---|")
    passed = [load(launches, until) for until in ("library", "first result")]
    return all(passed)


SECTIONS = {"calls": measure_calls, "throughput": measure_throughput, "load": measure_load}
FRAMEWORK_NAMES = ["pytorch", "tensorflow", "numpy"]


def main() -> int:
    """Measure what the arguments name; exit with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default all")
    parser.add_argument("--framework", nargs="+", default=FRAMEWORK_NAMES, choices=FRAMEWORK_NAMES)
    parser.add_argument("--launches", type=int, default=10, help="fresh processes (default 10)")
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds of sampling in each (default 5)")
    arguments = parser.parse_args()
    unknown = [section for section in arguments.sections if section not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    limit = arguments.time_limit
    plan = SamplingPlan(
        minimum_samples=30, minimum_time_s=min(1.0, limit), time_limit_s=limit, warm_up_time_s=limit / 2
    )
    passed = [
        SECTIONS[section](arguments.framework, arguments.launches, plan) for section in arguments.sections or SECTIONS
    ]
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
