"""An epoch of ``Trainer`` against the loop that a user writes by hand, and against Keras' ``fit``.

All train on the digits, ten times over (14,336 images of 8 x 8 pixels, minibatches of 64, a new random order each
epoch), with the framework's own momentum optimizer, and read the losses once an epoch. They run in the same processes,
in random order, round by round; what is compared are the medians of the launches.

* **pytorch**: at most 1.01 of the loop by hand for ResNet-8, 1.02 for LeNet.
* **tensorflow**: at most 1.02 of a loop by hand around one ``tf.function``, and of ``fit``.

    python -m benchmarks.training_loop
    python -m benchmarks.training_loop --framework pytorch --model resnet8 --launches 12
"""

from __future__ import annotations

import argparse
import importlib
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

MODELS: dict[str, tuple[str, dict[str, Any]]] = {"resnet8": ("resnet", {"depth": 8}), "lenet": ("lenet", {})}
BATCH_SIZE, RATE, MOMENTUM = 64, 0.01, 0.9
COPIES = 10

#: By framework: whom ``Trainer`` is compared with.
RIVALS = {"pytorch": ("by_hand",), "tensorflow": ("by_hand", "by_fit")}
LIMITS = {("pytorch", "resnet8"): 1.01}
LIMIT = 1.02

Epoch = Callable[[], float]


class TrainingLoop(Workload):
    """One epoch; the process has trained for one before."""

    def __init__(self, framework: str, model: str, implementation: str) -> None:
        self._said = {"framework": framework, "implementation": implementation}
        self._model = model
        images, labels = data()
        self._samples = len(images)
        if implementation == "trainer":
            self._epoch = epoch_of_trainer(framework, model, images, labels)
        else:
            native = importlib.import_module(f"benchmarks.native.training_loop_{framework}")
            make = getattr(native, f"epoch_{implementation}")
            self._epoch = make(model, images, labels, BATCH_SIZE, RATE, MOMENTUM)
        self._first = self._loss = self._epoch()

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"problem": "epoch of training", "model": self._model, "batch_size": BATCH_SIZE, "data": "digits x 10"}

    @property
    def factors(self) -> Mapping[str, Any]:
        return self._said

    @property
    def work(self) -> Work:
        return Work(items=self._samples, item="sample", dtype="float32")

    def run(self) -> None:
        self._loss = self._epoch()

    def close(self) -> None:
        if not self._loss < self._first < math.inf:
            raise MeasurementError(f"The loss of {self.spec} went from {self._first} to {self._loss}.")


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return whole minibatches of images and labels."""
    from deep500.datasets import load_dataset

    train, _ = load_dataset("digits")
    parts = (np.concatenate([train[:][name]] * COPIES) for name in ("input", "label"))
    images, labels = parts
    count = len(images) // BATCH_SIZE * BATCH_SIZE
    return images[:count], labels[:count]


def epoch_of_trainer(framework: str, model: str, images: np.ndarray, labels: np.ndarray) -> Epoch:
    """Return a function that trains for an epoch by ``Trainer``."""
    from deep500.datasets import NumpyDataset
    from deep500.networks import create_model
    from deep500.training import ShuffleSampler, Trainer

    adapter = importlib.import_module(f"deep500.frameworks.{framework}")
    name, arguments = MODELS[model]
    network = create_model(name, classes=10, shape=images.shape[1:], **arguments)
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = adapter.from_model(network)
    optimizer = adapter.MomentumOptimizer(executor, "loss", RATE, MOMENTUM)
    sampler = ShuffleSampler(NumpyDataset(images, "input", labels, "label", classes=10), BATCH_SIZE)
    trainer = Trainer(sampler, None, executor, optimizer)

    def epoch() -> float:
        (record,) = trainer.run_loop(1, []).epochs
        assert record.training is not None
        assert record.training.loss is not None
        return record.training.loss

    return epoch


def report(framework: str, model: str, launches: int, plan: SamplingPlan) -> bool:
    """Print a row for each rival; return whether the targets are met."""
    names = [*RIVALS[framework], "trainer"]
    spec = f"benchmarks.training_loop:TrainingLoop,framework={framework},model={model},implementation="
    measurement = bench(*(spec + n for n in names), launches=launches, plan=plan, pairing="samples", labels=names)
    limit = LIMITS.get((framework, model), LIMIT)
    is_met = True
    for rival in RIVALS[framework]:
        found = compare([(measurement, rival), (measurement, "trainer")])
        row, base = found.rows[0], found.base
        interval = "none" if row.interval is None else f"{row.interval.low:.3f} .. {row.interval.high:.3f}"
        rounds = min(len(samples) for samples in measurement.system("trainer").metric().rows)
        verdict = "met" if row.ratio <= limit else "MISSED"
        is_met = is_met and row.ratio <= limit
        print(
            f"| {framework} | {model} | {rival.replace('_', ' ')} | {row.system.absolute.estimate * 1e3:.1f} | "
            f"{base.absolute.estimate * 1e3:.1f} | {row.ratio:.3f} | {interval} | {launches} x {rounds} or more | "
            f"at most {limit}: {verdict} |",
            flush=True,
        )
    return is_met


def main() -> int:
    """Measure what the arguments name; exit with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", nargs="+", default=list(RIVALS), choices=list(RIVALS))
    parser.add_argument("--model", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--launches", type=int, default=6, help="fresh processes (default 6)")
    parser.add_argument("--time-limit", type=float, default=6.0, help="seconds of samples a launch (default 6)")
    arguments = parser.parse_args()
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, batch {BATCH_SIZE}\n")
    print("| framework | model | against | Trainer, ms | other, ms | ratio | interval | launches x rounds | target |")
    print("|---|---|---|---|---|---|---|---|---|")
    plan = SamplingPlan(minimum_samples=6, time_limit_s=arguments.time_limit, warm_up=0)
    met = [
        report(framework, model, arguments.launches, plan)
        for framework in arguments.framework
        for model in arguments.model
    ]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
