"""An epoch of small JPEG files through the input pipeline, against torch's DataLoader and tf.data.

10,000 images of 64 x 64 pixels, quality 90, are read from files, decoded, cropped at random after padding, mirrored at
random and normalised to float32 minibatches ``[64, 3, 64, 64]`` in random order; nothing else is done with them. A run
is one epoch of 156 minibatches, on files that the system has in its cache. Each pair runs in the same processes, in
random order; what is compared are the medians of the launches. The target is at most 1.0 of each rival's time.

* **pytorch**: ``DataLoader`` with two persistent workers, the decoder that Deep500 uses, and plain torch calls.
* **tensorflow**: ``tf.data`` with AUTOTUNE and any order, normalisation after batching.
* **deep500**: ``InputPipeline``, ``--kind thread`` or ``process``, with two workers against the DataLoader's two;
  against tf.data, which takes as many threads as it finds to pay, with four (``--workers``).

    python -m benchmarks.input_pipeline
    python -m benchmarks.input_pipeline pytorch --kind thread --launches 6
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.datasets import FileListDataset, HorizontalFlip, ImageDecoder, Normalise, RandomCrop
from deep500.datasets.decoding import FAST_JPEG
from deep500.measure.results.comparing import compare
from deep500.measure.sampling import SamplingPlan, bench
from deep500.measure.workload import Work, Workload
from deep500.training import InputPipeline, ShuffleSampler

#: Deep500's workers against each rival.
RIVALS = {"pytorch": 2, "tensorflow": 4}
TARGET = 1.0

IMAGES = 10_000
#: Workers of the DataLoader.
WORKERS = 2
SETTINGS: dict[str, Any] = {
    "size": 64,
    "padding": 4,
    "batch_size": 64,
    "mean": (0.4914, 0.4822, 0.4465),
    "standard_deviation": (0.2470, 0.2435, 0.2616),
}

#: Names the folder of the images, which the launches of one run share.
_FOLDER = "DEEP500_BENCHMARK_IMAGES"


def write_images(folder: Path) -> None:
    """Write the files: noise whose amplitude falls with the frequency, as that of photographs does."""
    from PIL import Image

    size = SETTINGS["size"]
    rng = np.random.default_rng(0)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(size), np.fft.rfftfreq(size), indexing="ij"))
    falling = 1 / np.maximum(frequency, 1 / size)
    for number in range(IMAGES):
        noise = np.fft.irfft2(np.fft.rfft2(rng.standard_normal((3, size, size))) * falling, (size, size))
        noise[1:] = 0.2 * noise[1:] + noise[:1]  # colours go together
        pixels = np.clip(128 + 50 * noise / noise.std(), 0, 255).astype(np.uint8).transpose(1, 2, 0)
        Image.fromarray(pixels).save(folder / f"{number:05}.jpg", quality=90)


def deep500_epochs(paths: list[str], labels: list[int], kind: str, workers: int) -> Iterator[Iterator[tuple[Any, Any]]]:
    """Yield one iterator over minibatches an epoch."""
    dataset = FileListDataset(paths, "input", ImageDecoder(SETTINGS["size"], dtype="uint8", fit="exact"), labels)
    transformations = [
        RandomCrop(SETTINGS["size"], SETTINGS["padding"]),
        HorizontalFlip(),
        Normalise(SETTINGS["mean"], SETTINGS["standard_deviation"]),
    ]
    sampler = ShuffleSampler(dataset, SETTINGS["batch_size"], transformations=transformations)
    pipeline = InputPipeline(sampler, workers, kind)
    while True:
        yield ((batch["input"], batch["label"]) for batch in pipeline)
        pipeline.reset()


class Reading(Workload):
    """One epoch through one pipeline."""

    def __init__(self, system: str, workers: int = WORKERS) -> None:
        self._system, self._workers = system, workers
        paths = sorted(str(path) for path in Path(os.environ[_FOLDER]).glob("*.jpg"))
        labels = [number % 10 for number in range(len(paths))]
        if system in RIVALS:
            native = importlib.import_module(f"benchmarks.native.input_pipeline_{system}")
            self._epochs = native.epochs(paths, labels, SETTINGS, workers)
        else:
            self._epochs = deep500_epochs(paths, labels, system, workers)
        self._minibatches = len(paths) // SETTINGS["batch_size"]
        self._check()

    def run(self) -> None:
        """Read an epoch."""
        count = sum(1 for _ in next(self._epochs))
        if count != self._minibatches:
            raise MeasurementError(f"An epoch of {self._system} has {count} minibatches, not {self._minibatches}.")

    def _check(self) -> None:
        """Read an epoch and look whether it has what it must have; it warms up workers too."""
        shape = (SETTINGS["batch_size"], 3, SETTINGS["size"], SETTINGS["size"])
        counts = np.zeros(10, int)
        total = squares = np.zeros(3)
        for images, labels in next(self._epochs):
            values = np.asarray(images)
            if values.shape != shape or values.dtype != np.float32:
                raise MeasurementError(f"{self._system} gives {values.dtype} {values.shape}, not float32 {shape}.")
            counts += np.bincount(np.asarray(labels), minlength=10)
            total = total + values.mean(axis=(0, 2, 3), dtype=np.float64)
            squares = squares + np.square(values).mean(axis=(0, 2, 3), dtype=np.float64)
        mean, square = total / self._minibatches, squares / self._minibatches
        # The padding is black, 6 % of the pixels; the rest has mean 128 and the deviations that clipping leaves of 50.
        if counts.sum() != self._minibatches * shape[0] or np.ptp(counts) > 64:
            raise MeasurementError(f"{self._system} gives samples of the classes {counts.tolist()}.")
        if not (np.abs(mean) < 0.25).all() or not (np.abs(square - 0.85) < 0.25).all():
            raise MeasurementError(f"{self._system} gives images with the means {mean} and squares {square}.")

    @property
    def identity(self) -> Mapping[str, Any]:
        """What is read."""
        return {"problem": "reading an epoch of JPEG files", "images": IMAGES, "batch_size": SETTINGS["batch_size"]}

    @property
    def factors(self) -> Mapping[str, Any]:
        """Who reads it."""
        return {"system": self._system, "workers": self._workers, "simplejpeg": FAST_JPEG.is_installed()}

    @property
    def work(self) -> Work:
        """Images of an epoch."""
        return Work(items=self._minibatches * SETTINGS["batch_size"], item="image")


def report(rival: str, kind: str, workers: int, launches: int, plan: SamplingPlan) -> bool:
    """Print one row; return whether the target is met."""
    spec = "benchmarks.input_pipeline:Reading,system="
    labels = [rival, f"deep500 ({workers} {kind})"]
    specs = (f"{spec}{rival}", f"{spec}{kind},workers={workers}")
    measurement = bench(*specs, launches=launches, plan=plan, pairing="samples", labels=labels)
    found = compare([(measurement, system) for system in measurement.systems])
    row, base = found.rows[0], found.base
    interval = "none" if row.interval is None else f"{row.interval.low:.3f} .. {row.interval.high:.3f}"
    met = row.ratio <= TARGET
    print(
        f"| {rival} | {workers} {kind} | {row.system.absolute.estimate:.3f} | {base.absolute.estimate:.3f} | "
        f"{row.ratio:.3f} | {interval} | at most {TARGET}: {'met' if met else 'MISSED'} |",
        flush=True,
    )
    return met


def main() -> int:
    """Measure what the arguments name; exit with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rival", nargs="*", default=list(RIVALS), help=", ".join(RIVALS))
    parser.add_argument("--kind", nargs="+", default=["thread"], choices=("thread", "process"))
    parser.add_argument("--workers", type=int, help="Deep500's (default 2, against tf.data 4)")
    parser.add_argument("--launches", type=int, default=6, help="fresh processes (default 6)")
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds of samples a launch (default 30)")
    arguments = parser.parse_args()
    decoder = "simplejpeg" if FAST_JPEG.is_installed() else "Pillow"
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, {decoder}\n")
    print("| rival | workers | Deep500, s an epoch | rival, s | ratio | interval | target |")
    print("|---|---|---|---|---|---|---|")
    plan = SamplingPlan(minimum_samples=6, time_limit_s=arguments.time_limit)
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder))
        os.environ[_FOLDER] = folder
        met = [
            report(rival, kind, arguments.workers or RIVALS[rival], arguments.launches, plan)
            for rival in arguments.rival
            for kind in arguments.kind
        ]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
