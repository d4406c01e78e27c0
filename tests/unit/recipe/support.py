"""Small recipes for the tests: a few seconds of nothing but the runner's own work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.measure.metric import Direction, TestMetric
from deep500.recipe.result import SCHEMA_FILE, MetricResult, RecipeResult
from deep500.training.optimizers.momentum import MomentumOptimizer

PROJECT = Path(__file__).resolve().parents[3]


class Constant(TestMetric):
    """A metric that is a constant."""

    unit = "u"

    def __init__(self, value: float, direction: Direction = Direction.HIGHER) -> None:
        self.value = value
        self.direction = direction
        self.calls: list[str] = []

    def begin(self, inputs: Any) -> None:
        self.calls.append("begin")

    def end(self, outputs: Any) -> None:
        self.calls.append("end")

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        self.calls.append("measure")
        assert self.calls == ["begin", "end", "measure"], self.calls
        return self.value


def native(framework: str, name: str = "MomentumOptimizer") -> type[MomentumOptimizer]:
    """Return an optimizer that looks as if an adapter defined it; the framework need not be installed."""
    return type(name, (MomentumOptimizer,), {"__module__": f"deep500.frameworks.{framework}.optimizers"})


def small_data() -> tuple[NumpyDataset, NumpyDataset]:
    """Return three classes of 2 x 2 images that a linear network separates, 48 to train and 24 to test."""
    random = np.random.default_rng(0)
    labels = np.arange(72) % 3
    images = random.normal(0, 0.1, (72, 1, 2, 2)).astype(np.float32)
    for label in range(3):
        images[labels == label, 0, label // 2, label % 2] += 1
    return NumpyDataset(images[:48], "input", labels[:48], "label"), NumpyDataset(
        images[48:], "input", labels[48:], "label"
    )


def small_parts(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return FIXED and MUTABLE of a recipe that takes milliseconds; ``changes`` go to MUTABLE, ``None`` removes."""
    fixed = {"model": "mlp", "model_kwargs": {"hidden": (6,)}, "dataset": small_data(), "epochs": 2}
    mutable = {
        "batch_size": 8,
        "executor": "reference",
        "optimizer": "momentum",
        "optimizer_kwargs": {"learning_rate": 0.1, "momentum": 0.5},
        **changes,
    }
    return (
        {key: value for key, value in fixed.items() if key not in changes},
        {key: value for key, value in mutable.items() if value is not None},
    )


def result(**changes: Any) -> RecipeResult:
    values: dict[str, Any] = {
        "recipe": {"name": "small", "path": None},
        "fixed": {"epochs": 1},
        "mutable": {"seed": 0},
        "configuration_hash": "0" * 64,
        "experiment_hash": "2" * 64,
        "framework": {"name": "reference", "version": "2"},
        "device": "cpu",
        "seeds": {"recipe": 0, "initialisation": None, "train_sampler": 0, "validation_sampler": 0},
        "initial_weights_hash": "1" * 64,
        "versions": {"deep500": "1", "python": "3", "numpy": "2", "onnx": "1"},
        "environment": {
            "schema_version": 1,
            "taken": "2026-01-01T00:00:00.000+00:00",
            "elapsed_s": 0.1,
            "sections": {"cpu": {"model": "unavailable", "reasons": {"model": "planted"}}},
            "noise": {"elapsed_s": 0.1, "reasons": {}},
            "isolation": [],
        },
        "started": "2026-01-01T00:00:00.000+00:00",
        "ended": "2026-01-01T00:00:01.000+00:00",
        "metrics": [MetricResult("Accuracy", 98.0, "%", "higher", 97.0, 1.0, True)],
        "regions": {"elapsed_s": 1.0, "overhead_s_per_call": 1e-6, "overhead_s": 0.0, "rows": []},
        "noise": {"elapsed_s": 1.0, "reasons": {}},
        "complete": True,
        **changes,
    }
    return RecipeResult(**values)


def region_row(*path: str, total_s: float = 1.0, **changes: Any) -> dict[str, Any]:
    """Return a row of a result's regions."""
    return {
        "path": list(path),
        "calls": 1,
        "total_s": total_s,
        "self_s": total_s,
        "share_of_parent": 0.5,
        "min_s": total_s,
        "median_s": total_s,
        "max_s": total_s,
        "overhead_s": 1e-6,
        "samples_s": [total_s],
        **changes,
    }


def check_schema(content: Any) -> None:
    """Check the content of a result file; where the validator is not installed, skip the test from here on."""
    import jsonschema

    schema = json.loads(SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(content)


RECIPE = """
import deep500 as d5
from recipes.recipe import run_recipe

FIXED = {{
    "model": "mlp",
    "model_kwargs": dict(hidden=(16,)),
    "dataset": "digits",
    "dataset_kwargs": dict(test_samples=1500),
    "epochs": {epochs},
}}
MUTABLE = {{
    "batch_size": 32,
    "executor": "reference",
    "optimizer": "momentum",
    "optimizer_kwargs": dict(learning_rate=0.05, momentum=0.9),
    {more}
}}
METRICS = [{metrics}]

if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
"""


def write_recipe(
    folder: Path,
    name: str = "mine.py",
    *,
    epochs: Any = 2,
    more: str = "",
    metrics: str = "(d5.TestAccuracy(), 30.0)",
    text: str = RECIPE,
) -> Path:
    """Write a recipe file."""
    path = folder / name
    path.write_text(text.format(epochs=epochs, more=more, metrics=metrics))
    return path


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a fresh interpreter that finds this checkout."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**kept, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1", **more}


def run_python(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=120
    )


def signalled(command: list[str], sent: signal.Signals, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that trains a recipe, send a signal soon after the training has begun, and wait for its end."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()  # told right before the training
        time.sleep(0.5)
        process.send_signal(sent)
        out, error = process.communicate(timeout=60)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, out, error)
