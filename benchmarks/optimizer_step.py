"""Adam written once in Deep500 against PyTorch's own Adam: the update of the parameters alone, gradients given.

Both update the parameters of the same network in the same processes, in random order, pair by pair; what is compared
are the medians of the launches. Item 4 of the sixth milestone: the rule as it is compiled
(``from_model(network, compile=True)``) takes at most 1.05 of the faster of PyTorch's fused and foreach Adam on the
11.7 million float32 parameters of ResNet-18, with two threads. The rule as it is, not compiled, is reported beside it.

    python -m benchmarks.optimizer_step
    python -m benchmarks.optimizer_step --model lenet --own plain --launches 6
"""

from __future__ import annotations

import argparse
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

#: Models with the shape of a sample and the number of classes.
MODELS: dict[str, tuple[tuple[int, ...], int]] = {"resnet18": ((3, 224, 224), 1000), "lenet": ((1, 8, 8), 10)}

#: Deep500's Adam, and PyTorch's.
OWN = ("compiled", "plain")
PEERS = ("fused", "foreach")


class OptimizerStep(Workload):
    """One update of all parameters by Adam."""

    def __init__(self, model: str, implementation: str, threads: str) -> None:
        import torch

        torch.set_num_threads(int(threads))
        self._model, self._implementation = model, implementation
        executor, self._step = (
            own_step(model, implementation) if implementation in OWN else peer_step(model, implementation)
        )
        self._parameters = list(executor.stored.parameters())
        self._step()

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"problem": "update of parameters", "model": self._model, "rule": "Adam"}

    @property
    def factors(self) -> Mapping[str, Any]:
        return {"implementation": self._implementation}

    @property
    def work(self) -> Work:
        return Work(items=sum(p.numel() for p in self._parameters), item="parameter", dtype="float32")

    def run(self) -> None:
        self._step()

    def close(self) -> None:
        total = sum(float(p.detach().abs().sum()) for p in self._parameters)
        if not math.isfinite(total):
            raise MeasurementError(f"The parameters of {self.spec} add up to {total}.")


def executor_of(model: str, compile: bool) -> Any:
    """Return an executor whose parameters have gradients."""
    import torch

    from deep500.frameworks.pytorch import from_model
    from deep500.networks import create_model

    shape, classes = MODELS[model]
    network = create_model(model, classes=classes, shape=shape)
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = from_model(network, compile=compile)
    stream = np.random.default_rng(0)
    for parameter in executor.stored.parameters():
        gradient = 0.01 * stream.standard_normal(tuple(parameter.shape))
        parameter.grad = torch.from_numpy(gradient.astype(np.float32))
    return executor


def own_step(model: str, implementation: str) -> tuple[Any, Callable[[], Any]]:
    """Return an executor and the update by Deep500's rule."""
    from deep500.training.optimizers.adam import AdamOptimizer

    executor = executor_of(model, implementation == "compiled")
    return executor, AdamOptimizer(executor).updates.apply


def peer_step(model: str, implementation: str) -> tuple[Any, Callable[[], Any]]:
    """Return an executor and the update by PyTorch's own optimizer."""
    import torch

    executor = executor_of(model, False)
    optimizer = torch.optim.Adam(
        executor.stored.parameters(), fused=implementation == "fused", foreach=implementation == "foreach"
    )
    return executor, optimizer.step


def report(model: str, own: str, peer: str, threads: int, launches: int, plan: SamplingPlan) -> tuple[float, float]:
    """Print one row; return the ratio and the peer's time in seconds."""
    spec = f"benchmarks.optimizer_step:OptimizerStep,model={model},threads={threads},implementation="
    measurement = bench(spec + peer, spec + own, launches=launches, plan=plan, pairing="samples", labels=[peer, own])
    found = compare([(measurement, system) for system in measurement.systems])
    row, base = found.rows[0], found.base
    interval = "none" if row.interval is None else f"{row.interval.low:.3f} .. {row.interval.high:.3f}"
    pairs = min(len(samples) for samples in measurement.system(peer).metric().rows)
    print(
        f"| {model} | {own} | {peer} | {row.system.absolute.estimate * 1e3:.3f} | {base.absolute.estimate * 1e3:.3f} | "
        f"{row.ratio:.3f} | {interval} | {launches} x {pairs} or more |",
        flush=True,
    )
    return float(row.ratio), float(base.absolute.estimate)


def main() -> int:
    """Measure what the arguments name; exit with 1 when the compiled rule is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--own", nargs="+", default=list(OWN), choices=OWN)
    parser.add_argument("--peer", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--threads", type=int, default=2, help="PyTorch's threads (default 2)")
    parser.add_argument("--launches", type=int, default=10, help="fresh processes (default 10)")
    parser.add_argument("--limit", type=float, default=1.05, help="highest ratio that passes (default 1.05)")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds of a launch (default 20)")
    arguments = parser.parse_args()
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores\n")
    print("| model | Deep500 | PyTorch | Deep500, ms | PyTorch, ms | ratio | interval | launches x pairs |")
    print("|---|---|---|---|---|---|---|---|")
    plan = SamplingPlan(minimum_samples=50, time_limit_s=arguments.time_limit)
    is_over = False
    for model in arguments.model:
        for own in arguments.own:
            rows = [report(model, own, peer, arguments.threads, arguments.launches, plan) for peer in arguments.peer]
            against_faster = min(rows, key=lambda row: row[1])[0]
            is_over |= (model, own) == ("resnet18", "compiled") and against_faster > arguments.limit
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
