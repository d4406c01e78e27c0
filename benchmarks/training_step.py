"""A training step through Deep500 against the same step hand-written in the framework.

Both run in the same processes on the same batches, in random order, pair by pair; what is compared are the medians of
ten process launches.

    python -m benchmarks.training_step --framework pytorch tensorflow --model lenet resnet8

Item 5 of the first milestone: the median ratio is at most 1.05.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import math
import os
import platform
import sys
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.measure.results.comparing import compare
from deep500.measure.sampling import SamplingPlan, bench
from deep500.measure.workload import Work, Workload

SHAPES = {"lenet": (1, 8, 8), "resnet8": (3, 32, 32)}
ARGUMENTS = {"lenet": ("lenet", {}), "resnet8": ("resnet", {"depth": 8})}
CLASSES = 10
BATCH_SIZE = 64

Step = Callable[[np.ndarray, np.ndarray], float]


class TrainingStep(Workload):
    """One training step with the framework's own momentum optimizer: NumPy batch in, loss out."""

    def __init__(self, framework: str, model: str, implementation: str) -> None:
        self._framework, self._model, self._implementation = framework, model, implementation
        self._step = {"deep500": deep500_step, "native": native_step}[implementation](framework, model)
        stream = np.random.default_rng(0)
        self._batches = itertools.cycle(
            [
                (
                    stream.standard_normal((BATCH_SIZE, *SHAPES[model])).astype(np.float32),
                    stream.integers(0, CLASSES, BATCH_SIZE),
                )
                for _ in range(8)
            ]
        )
        self._loss = 0.0

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"problem": "training step", "model": self._model, "batch_size": BATCH_SIZE, "data": "8 normal batches"}

    @property
    def factors(self) -> Mapping[str, Any]:
        return {"framework": self._framework, "implementation": self._implementation}

    @property
    def work(self) -> Work:
        return Work(items=BATCH_SIZE, item="sample", dtype="float32")

    def run(self) -> None:
        self._loss = self._step(*next(self._batches))

    def close(self) -> None:
        if not math.isfinite(self._loss):
            raise MeasurementError(f"The loss of {self.spec} is {self._loss}.")


def deep500_step(framework: str, model: str) -> Step:
    """Return a training step through Deep500 with the framework's own momentum optimizer."""
    from deep500.networks import create_model

    adapter = importlib.import_module(f"deep500.frameworks.{framework}")
    name, arguments = ARGUMENTS[model]
    network = create_model(name, classes=CLASSES, shape=SHAPES[model], **arguments)
    network.append_loss("SoftmaxCrossEntropyLoss")
    optimizer = adapter.MomentumOptimizer(adapter.from_model(network), "loss", 0.01, 0.9)

    def step(x: np.ndarray, y: np.ndarray) -> float:
        return float(optimizer.step({"input": x, "label": y})["loss"])

    return step


def native_step(framework: str, model: str) -> Step:
    """Return the hand-written training step."""
    module = importlib.import_module(f"benchmarks.native.{framework}")
    return module.training_step(model, SHAPES[model], CLASSES)


def report(framework: str, model: str, launches: int, plan: SamplingPlan) -> float:
    """Print one row and return the ratio."""
    spec = f"benchmarks.training_step:TrainingStep,framework={framework},model={model},implementation="
    measurement = bench(
        spec + "native", spec + "deep500", launches=launches, plan=plan, pairing="samples", labels=["native", "deep500"]
    )
    found = compare([(measurement, system) for system in measurement.systems])
    row, base = found.rows[0], found.base
    interval = "none" if row.interval is None else f"{row.interval.low:.3f} .. {row.interval.high:.3f}"
    pairs = min(len(samples) for samples in measurement.system("native").metric().rows)
    print(
        f"| {framework} | {model} | {row.system.absolute.estimate * 1e3:.3f} | {base.absolute.estimate * 1e3:.3f} | "
        f"{row.ratio:.3f} | {interval} | {launches} x {pairs} or more |",
        flush=True,
    )
    return row.ratio


def main() -> int:
    """Measure what the arguments name; exit with 1 when a ratio is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", nargs="+", default=["pytorch", "tensorflow"])
    parser.add_argument("--model", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--launches", type=int, default=10, help="fresh processes (default 10)")
    parser.add_argument("--limit", type=float, default=1.05, help="highest ratio that passes (default 1.05)")
    arguments = parser.parse_args()
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, batch {BATCH_SIZE}\n")
    print("| framework | model | Deep500, ms | native, ms | ratio | interval | launches x pairs |")
    print("|---|---|---|---|---|---|---|")
    plan = SamplingPlan(minimum_samples=50, time_limit_s=20.0)
    ratios = [
        report(framework, model, arguments.launches, plan)
        for framework in arguments.framework
        for model in arguments.model
    ]
    return int(max(ratios) > arguments.limit)


if __name__ == "__main__":
    sys.exit(main())
