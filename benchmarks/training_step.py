"""A training step through Deep500 against the same step hand-written in the framework.

Both run in one process on the same batches, in random order, pair by pair; several processes are launched. The
ratio of a pair is what is compared: the machine's speed drifts, but both of a pair see the same machine.

    python -m benchmarks.training_step --framework pytorch tensorflow --model lenet resnet8

Item 5 of the first milestone: the median ratio is at most 1.05.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date

import numpy as np

SHAPES = {"lenet": (1, 8, 8), "resnet8": (3, 32, 32)}
ARGUMENTS = {"lenet": ("lenet", {}), "resnet8": ("resnet", {"depth": 8})}
CLASSES = 10
BATCH_SIZE = 64

Step = Callable[[np.ndarray, np.ndarray], float]


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


def measure(framework: str, model: str, pairs: int, warmup: int) -> dict[str, list[float]]:
    """Return the seconds of each step, pair by pair."""
    steps = {"deep500": deep500_step(framework, model), "native": native_step(framework, model)}
    stream = np.random.default_rng(0)
    batches = [
        (
            stream.standard_normal((BATCH_SIZE, *SHAPES[model])).astype(np.float32),
            stream.integers(0, CLASSES, BATCH_SIZE),
        )
        for _ in range(8)
    ]
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    order = list(steps)
    for pair in range(warmup + pairs):
        random.shuffle(order)
        for name in order:
            x, y = batches[pair % len(batches)]
            start = time.perf_counter_ns()
            loss = steps[name](x, y)
            elapsed = (time.perf_counter_ns() - start) / 1e9
            if not math.isfinite(loss):
                raise SystemExit(f"The loss of {name} is {loss}.")
            if pair >= warmup:
                seconds[name].append(elapsed)
    return seconds


def launch(framework: str, model: str, pairs: int, warmup: int) -> dict[str, list[float]]:
    """Measure in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.training_step", "--worker", framework, model, str(pairs), str(warmup)]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    finished = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, text=True)
    return json.loads(finished.stdout.splitlines()[-1])


def report(framework: str, model: str, launches: list[dict[str, list[float]]]) -> float:
    """Print one row and return the median ratio.

    The interval runs from the lowest to the highest launch median: for six launches it covers the median with
    97 % (1 - 2 / 2^6).
    """
    medians = {name: [float(np.median(run[name])) * 1e3 for run in launches] for name in ("deep500", "native")}
    ratios = [float(np.median(np.divide(run["deep500"], run["native"]))) for run in launches]
    ratio = float(np.median(ratios))
    print(
        f"| {framework} | {model} | {np.median(medians['deep500']):.3f} | {np.median(medians['native']):.3f} | "
        f"{ratio:.3f} | {min(ratios):.3f} .. {max(ratios):.3f} | {len(launches)} x {len(launches[0]['native'])} |",
        flush=True,
    )
    return ratio


def main() -> int:
    """Measure what the arguments name; exit with 1 when a ratio is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", nargs="+", default=["pytorch", "tensorflow"])
    parser.add_argument("--model", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--launches", type=int, default=6, help="fresh processes (default 6)")
    parser.add_argument("--pairs", type=int, default=100, help="pairs of steps in each process (default 100)")
    parser.add_argument("--warmup", type=int, default=20, help="pairs before those that count (default 20)")
    parser.add_argument("--limit", type=float, default=1.05, help="highest median ratio that passes (default 1.05)")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        framework, model, pairs, warmup = arguments.worker
        print(json.dumps(measure(framework, model, int(pairs), int(warmup))))
        return 0
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, batch {BATCH_SIZE}\n")
    print("| framework | model | Deep500, ms | native, ms | ratio | interval | launches x pairs |")
    print("|---|---|---|---|---|---|---|")
    ratios = [
        report(
            framework,
            model,
            [launch(framework, model, arguments.pairs, arguments.warmup) for _ in range(arguments.launches)],
        )
        for framework in arguments.framework
        for model in arguments.model
    ]
    return int(max(ratios) > arguments.limit)


if __name__ == "__main__":
    sys.exit(main())
