"""Peak memory of a training step in parts of the batch against the plain step, and whether the gradients are equal.

Each step runs in a fresh process under PyTorch on the processor. The peak is the resident memory of the whole process
during its first step beyond what was resident right before (weights and batch are there by then), by the metric
PeakMemory; glibc is told to give freed tensors back at once, so that what was freed before does not hide what the step
needs. Steps are timed in processes of their own, without that. BatchNormalization is in evaluation mode: its statistics
are those of the network, not of the batch.

    python -m benchmarks.micro_batching --model alexnet resnet18

Targets: less than half of the plain step's memory, gradients equal within 1e-5 of the largest entry of each.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

SHAPE = (3, 224, 224)
CLASSES = 1000
#: Batch sizes, and the share of the plain step's modelled memory, weights aside, for which parts are chosen.
BATCHES = {"alexnet": 256, "resnet18": 32}
SHARE = 0.43


def network(model: str) -> Any:
    """Return the network with its loss; running statistics are those of a trained network, not 0 and 1."""
    from deep500.core.random import random_stream
    from deep500.networks.creation import create_model

    made = create_model(model, classes=CLASSES, shape=SHAPE)
    for name, kind in made.states.items():
        low, high = (0.5, 1.5) if name.endswith("var") else (-0.2, 0.2)
        made.feed_tensor(name, random_stream(0, name).uniform(low, high, kind.shape).astype(kind.dtype))
    made.append_loss("SoftmaxCrossEntropyLoss")
    return made


def run_step(model: str, batch: int, size: int, repeats: int, gradients: Path) -> dict[str, Any]:
    """Measure one kind of step in this process, and keep the gradients."""
    from deep500.core.random import random_stream
    from deep500.frameworks.pytorch import from_model
    from deep500.measure.clock import Stopwatch
    from deep500.measure.metrics.peak_memory import PeakMemory
    from deep500.networks.creation import create_model
    from deep500.networks.micro_batched_executor import MicroBatchedExecutor

    small = create_model("resnet", depth=8, shape=(3, 8, 8))
    small.append_loss("SoftmaxCrossEntropyLoss")
    warm: Any = from_model(small)  # what the framework loads when it runs first is not the step's
    warm.inference_and_backprop({"input": np.zeros((2, 3, 8, 8), np.float32), "label": np.zeros(2, np.int64)})
    stream = random_stream(0, "batch")
    inputs = {
        "input": stream.standard_normal((batch, *SHAPE), dtype=np.float32),
        "label": stream.integers(0, CLASSES, batch),
    }
    executor: Any = from_model(network(model))
    if size < batch:
        executor = MicroBatchedExecutor(executor, size)
    peak = PeakMemory(reruns=0)
    peak.begin()
    loss = float(executor.inference_and_backprop(inputs)["loss"])
    peak.end()
    np.savez(gradients, **{name: executor.fetch(gradient) for name, gradient in executor.network.gradient()})
    seconds = []
    for _ in range(repeats):
        watch = Stopwatch(executor.synchronize)
        executor.inference_and_backprop(inputs)
        seconds.append(watch.elapsed_s())
    return {"peak": peak.measure() - (peak.before_bytes or 0), "seconds": min(seconds, default=0.0), "loss": loss}


def in_fresh_process(model: str, batch: int, size: int, repeats: int, gradients: Path) -> dict[str, Any]:
    """Measure one kind of step in a process of its own."""
    arguments = [model, str(batch), str(size), str(repeats), str(gradients)]
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.micro_batching", "--child", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | ({} if repeats else {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}),
    )
    if finished.returncode:
        raise SystemExit(finished.stderr)
    measured: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return measured


def largest_difference(first: Path, second: Path) -> float:
    """Return the largest difference of a gradient, relative to the largest entry of that gradient."""
    worst = 0.0
    with np.load(first) as a, np.load(second) as b:
        for name in a.files:
            size = float(np.abs(a[name]).max())
            worst = max(worst, float(np.abs(a[name] - b[name]).max()) / (size or 1.0))
    return worst


def report(model: str, batch: int, repeats: int, folder: Path) -> bool:
    """Print one row; say whether both targets are met."""
    from deep500.networks.micro_batch_plan import step_bytes, step_size

    made = network(model)
    weights = made.parameter_size_bytes
    bound = weights + int(SHARE * (step_bytes(made, batch, workspaces=False) - weights))
    size = step_size(made, batch, bound, workspaces=False)
    plain = in_fresh_process(model, batch, batch, 0, folder / "plain.npz")
    parts = in_fresh_process(model, batch, size, 0, folder / "parts.npz")
    difference = largest_difference(folder / "plain.npz", folder / "parts.npz")
    ratio = parts["peak"] / plain["peak"]
    times = [in_fresh_process(model, batch, s, repeats, folder / "timed.npz")["seconds"] for s in (batch, size)]
    print(
        f"| {model} | {batch} | {size} | {plain['peak'] / 2**20:.0f} | {parts['peak'] / 2**20:.0f} | {ratio:.2f} | "
        f"{difference:.1e} | {times[0]:.1f} | {times[1]:.1f} |",
        flush=True,
    )
    return ratio < 0.5 and difference <= 1e-5


def main() -> int:
    """Measure what the arguments name; exit with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=list(BATCHES), choices=list(BATCHES))
    parser.add_argument("--repeats", type=int, default=1, help="steps that are timed after the first")
    parser.add_argument("--batch", type=int, help="batch size (default: 256 and 32)")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        model, batch, size, repeats, gradients = arguments.child
        measured = run_step(model, int(batch), int(size), int(repeats), Path(gradients))
        print(json.dumps(measured))
        return 0
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, PyTorch\n")
    print(
        "| model | batch | part | plain, MiB | in parts, MiB | ratio | gradients differ by | plain, s | in parts, s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        met = [
            report(model, arguments.batch or BATCHES[model], arguments.repeats, Path(folder))
            for model in arguments.model
        ]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
