"""A step of distributed training, and its exchange alone, against what frameworks have themselves.

Two ranks of one thread each train on minibatches of random images with the framework's momentum optimizer. All
implementations run in the same processes, in an order that is drawn anew each round, behind a barrier; the time of a
step is that of the slower rank. A launch gives the median ratio of its rounds, and the row shows the median of the
launches with its 95 % interval.

* **exchange**: 46.8 MB (the gradients of ResNet-18) as Deep500 exchanges them, against gloo (at most 0.50) and an
  allreduce a tensor through copies in NumPy (at most 0.45).
* **pytorch**: against ``DistributedDataParallel`` with gloo: LeNet, batch 32 a rank, at most 0.80; ResNet-18, batch 2
  at most 0.95, batch 32 at most 1.02.
* **tensorflow**: against ``MultiWorkerMirroredStrategy``: LeNet at most 0.75, ResNet-18 at most 0.95.

    python -m benchmarks.distributed_step
    python -m benchmarks.distributed_step --row exchange pytorch-lenet-32 --launches 6 --time-limit 4
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.distributed.launch import find_mpiexec
from deep500.measure.clock import Stopwatch
from deep500.measure.statistics.quantiles import quantile_interval, samples_needed

RANKS = 2
RATE, MOMENTUM = 0.01, 0.9
SHAPES = {"lenet": (1, 28, 28), "resnet18": (3, 224, 224)}
CLASSES = {"lenet": 10, "resnet18": 1000}

#: Rounds of a launch: enough for a median, and no more than needed.
FEWEST_ROUNDS, MOST_ROUNDS = 5, 400


@dataclass(frozen=True)
class Row:
    """What is compared: a model's step, or the exchange of its gradients; and the targets by rival."""

    framework: str
    model: str
    batch_size: int
    targets: Mapping[str, float]


ROWS = {
    "exchange": Row("pytorch", "resnet18", 0, {"gloo": 0.50, "per_tensor": 0.45}),
    "pytorch-lenet-32": Row("pytorch", "lenet", 32, {"native": 0.80, "per_tensor": math.inf}),
    "pytorch-resnet18-2": Row("pytorch", "resnet18", 2, {"native": 0.95, "per_tensor": math.inf}),
    "pytorch-resnet18-32": Row("pytorch", "resnet18", 32, {"native": 1.02}),
    "tensorflow-lenet-32": Row("tensorflow", "lenet", 32, {"native": 0.75}),
    "tensorflow-resnet18-2": Row("tensorflow", "resnet18", 2, {"native": 0.95}),
}

Run = Callable[[], Any]


def run_rank(row: Row, time_limit_s: float, seed: int, file: Path) -> None:
    """Measure one launch; called on each rank. The times, ``[round, implementation]``, go into a file."""
    from deep500.distributed.communicators.mpi import MPICommunicator

    if row.framework == "pytorch":
        import torch

        torch.set_num_threads(1)
    communicator = MPICommunicator()
    runs = make_runs(row, communicator)
    for run in runs.values():  # they map memory and choose kernels
        for _ in range(3):
            run()
    watch = Stopwatch()
    for run in runs.values():
        run()
    longest = np.array([watch.elapsed_s()])
    communicator.allreduce(longest, "maximum")
    rounds = min(max(round(time_limit_s / longest[0]), FEWEST_ROUNDS), MOST_ROUNDS)
    stream = np.random.default_rng(seed)
    times = np.zeros((rounds, len(runs)))
    names = list(runs)
    for number in range(rounds):
        for index in stream.permutation(len(names)):
            communicator.barrier()
            watch = Stopwatch()
            runs[names[index]]()
            times[number, index] = watch.elapsed_s()
    communicator.allreduce(times.reshape(-1), "maximum")
    if communicator.rank == 0:
        file.write_text(json.dumps({"names": names, "times": times.tolist()}))


def make_runs(row: Row, communicator: Any) -> dict[str, Run]:
    """Return the implementations by name; Deep500 is the first."""
    native = importlib.import_module(f"benchmarks.native.distributed_step_{row.framework}")
    if not row.batch_size:
        tensors = gradients_of(row.model)
        flat = np.concatenate([tensor.reshape(-1) for tensor in tensors])
        runs: dict[str, Run] = {"deep500": lambda: communicator.allreduce(flat, "mean")}
        return runs | {name: getattr(native, f"exchange_{name}")(tensors) for name in row.targets}
    stream = np.random.default_rng(communicator.rank)
    size = row.batch_size
    batch = {
        "input": stream.normal(size=(size, *SHAPES[row.model])).astype(np.float32),
        "label": stream.integers(0, CLASSES[row.model], size),
    }
    runs = {"deep500": step_of_deep500(row, batch, communicator)}
    runs |= {name: getattr(native, f"step_{name}")(row.model, batch) for name in row.targets}
    return {name: _learning(name, run) for name, run in runs.items()}


def gradients_of(model: str) -> list[np.ndarray]:
    """Return arrays in the sizes of the parameters."""
    from deep500.networks import create_model

    network = create_model(model, classes=CLASSES[model], shape=SHAPES[model])
    return [value.astype(np.float32) for value in network.fetch_tensors(network.get_params())]


def step_of_deep500(row: Row, batch: Mapping[str, np.ndarray], communicator: Any) -> Run:
    """Return a function that trains on a minibatch by ``DistributedOptimizer`` and returns the loss."""
    from deep500.distributed import DistributedOptimizer
    from deep500.networks import create_model

    adapter = importlib.import_module(f"deep500.frameworks.{row.framework}")
    network = create_model(row.model, classes=CLASSES[row.model], shape=SHAPES[row.model])
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = adapter.from_model(network)
    base = adapter.MomentumOptimizer(executor, "loss", RATE, MOMENTUM)
    optimizer = DistributedOptimizer(base, communicator)
    return lambda: float(optimizer.step(batch)["loss"])


def _learning(name: str, step: Run) -> Run:
    """Return a step that fails where the loss of the minibatch, which is always the same, does not fall at first."""
    losses: list[float] = []

    def run() -> None:
        loss = step()
        if len(losses) < FEWEST_ROUNDS:
            losses.append(loss)
            if len(losses) == FEWEST_ROUNDS and not min(losses) < losses[0]:
                raise MeasurementError(f"The losses of {name} began with {losses}: it does not train.")

    return run


def launch(name: str, time_limit_s: float, seed: int) -> tuple[list[str], np.ndarray]:
    """Start the ranks; return the implementations and their times, ``[round, implementation]``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "times.json"
        arguments = ["--rank-of", name, "--seed", str(seed), "--time-limit", str(time_limit_s), "--write", str(file)]
        command = [*find_mpiexec(), "-n", str(RANKS), sys.executable, "-m", "benchmarks.distributed_step", *arguments]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1")
        done = subprocess.run(
            command, env=os.environ | threads, capture_output=True, text=True, timeout=300 + 10 * time_limit_s
        )
        if done.returncode or not file.is_file():
            raise MeasurementError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        found = json.loads(file.read_text())
    return found["names"], np.array(found["times"])


def report(name: str, launches: int, time_limit_s: float) -> bool:
    """Print a line for each rival; return whether the targets are met."""
    row = ROWS[name]
    found = [launch(name, time_limit_s, seed) for seed in range(launches)]
    names = found[0][0]
    is_met = True
    for rival, target in row.targets.items():
        own, other = (names.index(who) for who in ("deep500", rival))
        ratios = [float(np.median(times[:, own] / times[:, other])) for _, times in found]
        ratio = statistics.median(ratios)
        interval = "none"
        if launches >= samples_needed(0.5, 0.95):
            limits = quantile_interval(ratios, 0.5, 0.95)
            interval = f"{limits.low:.3f} .. {limits.high:.3f}"
        medians = [statistics.median(float(np.median(times[:, i])) for _, times in found) for i in (own, other)]
        verdict = "for comparison"
        if target < math.inf:
            verdict = f"at most {target:.2f}: {'met' if ratio <= target else 'MISSED'}"
            is_met = is_met and ratio <= target
        rounds = min(len(times) for _, times in found)
        print(
            f"| {name} | {rival.replace('_', ' ')} | {medians[0] * 1e3:.2f} | {medians[1] * 1e3:.2f} | {ratio:.3f} | "
            f"{interval} | {launches} x {rounds} or more | {verdict} |",
            flush=True,
        )
    return is_met


def main() -> int:
    """Measure what the arguments name; exit with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--launches", type=int, default=6, help="how often the ranks are started (default 6)")
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds of samples a launch (default 5)")
    parser.add_argument("--rank-of", choices=list(ROWS), help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank_of is not None:
        run_rank(ROWS[arguments.rank_of], arguments.time_limit, arguments.seed, arguments.write)
        return 0
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, {RANKS} ranks\n")
    print("| row | against | Deep500, ms | other, ms | ratio | interval | launches x rounds | target |")
    print("|---|---|---|---|---|---|---|---|")
    met = [report(name, arguments.launches, arguments.time_limit) for name in arguments.row]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
