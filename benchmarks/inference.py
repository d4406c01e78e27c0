"""Inference through Deep500 against the network that was exported, and against other runtimes of ONNX.

A network written by hand in a framework is exported to ONNX; the framework's executor runs the file, the framework the
original. Both get a tensor of the framework, in the same processes, in random order, pair by pair; what is compared
are the medians of the launches. The targets:

* **pytorch**: at most 1.02 of the original ``torch.nn.Module``, and below 1 of onnx2pytorch's conversion of the file.
* **compiled**: ``from_model(compile=True)`` at most 1.02 of ``torch.compile`` of the original.
* **tensorflow**: at most 1.05 of Keras' own model, called as a ``tf.function``.
* **onnxruntime**: each against ONNX Runtime on the same file; reported.

    python -m benchmarks.inference
    python -m benchmarks.inference pytorch --model gpt_block --batch 1 --launches 6
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from deep500.core.errors import MeasurementError
from deep500.frameworks import FRAMEWORKS
from deep500.measure.results.comparing import compare
from deep500.measure.sampling import SamplingPlan, bench
from deep500.measure.workload import Work, Workload
from deep500.networks import Network

MODELS = ("resnet18", "mobilenet_v2", "gpt_block")
BATCHES = (1, 16)

#: Names the folder in which the launches of one run share what was exported.
_FOLDER = "DEEP500_BENCHMARK_EXPORTS"

Run = Callable[[], Any]

#: Each comparison: the framework whose form of the network is exported, who is compared with whom, and the limit.
COMPARISONS: dict[str, tuple[str, str, str, float | None]] = {
    "pytorch": ("pytorch", "deep500", "original", 1.02),
    "onnx2pytorch": ("pytorch", "deep500", "onnx2pytorch", 1.0),
    "compiled": ("pytorch", "compiled", "original-compiled", 1.02),
    "tensorflow": ("tensorflow", "deep500", "original", 1.05),
    "pytorch-onnxruntime": ("pytorch", "deep500", "onnxruntime", None),
    "tensorflow-onnxruntime": ("tensorflow", "deep500", "onnxruntime", None),
}


class Inference(Workload):
    """One inference of a network in one form."""

    def __init__(self, framework: str, model: str, batch: int, form: str) -> None:
        self._said = {"framework": framework, "form": form}
        self._model, self._batch = model, batch
        native = importlib.import_module(f"benchmarks.native.inference_{framework}")
        x = np.random.default_rng(0).standard_normal((batch, *native.INPUTS[model])).astype(np.float32)
        original = native.build(model)
        expected = np.asarray(ORIGINALS[framework](original, x)())
        run = FORMS[form](framework, original, x)
        found = np.asarray(run())
        error = float(np.abs(found - expected).max() / np.abs(expected).max())
        if not error < 1e-4:
            raise MeasurementError(f"{form} of {model} in {framework} is off by {error:.2g} of the largest output.")
        self.__dict__["run"] = run  # in the place of the method: a call less in each run

    def run(self) -> Any:
        """Infer."""
        return self.__dict__["run"]()

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"problem": "inference", "model": self._model, "batch_size": self._batch, "dtype": "float32"}

    @property
    def factors(self) -> Mapping[str, Any]:
        return self._said

    @property
    def work(self) -> Work:
        return Work(items=self._batch, item="sample", dtype="float32")


def _torch_original(module: Any, x: np.ndarray) -> Run:
    import torch

    tensor = torch.from_numpy(x)

    def run() -> Any:
        with torch.no_grad():
            return module(tensor)

    return run


def _keras_original(model: Any, x: np.ndarray) -> Run:
    import tensorflow as tf

    # A specification with the batch open, as a user's serving function has it.
    function = tf.function(lambda t: model(t, training=False), input_signature=[tf.TensorSpec([None, *x.shape[1:]])])
    return functools.partial(function.get_concrete_function(), tf.constant(x))


ORIGINALS = {"pytorch": _torch_original, "tensorflow": _keras_original}


def _original(framework: str, original: Any, x: np.ndarray) -> Run:
    return ORIGINALS[framework](original, x)


def _original_compiled(framework: str, original: Any, x: np.ndarray) -> Run:
    import torch

    return _torch_original(torch.compile(original), x)


def _exported(framework: str, original: Any, x: np.ndarray) -> Network:
    """Return the original as a network, read from the file of the launch before where there is one."""
    name = f"{framework}-{getattr(original, 'name', type(original).__name__)}-{sum(1 for _ in _weights(original))}.onnx"
    path = Path(os.environ[_FOLDER]) / name if _FOLDER in os.environ else None
    if path is not None and path.exists():
        return Network.load(path)
    network = _export(framework, original, x)
    if path is not None:
        network.save(path)
    return network


def _weights(original: Any) -> Any:
    return original.weights if hasattr(original, "weights") else original.parameters()


def _export(framework: str, original: Any, x: np.ndarray) -> Network:
    if framework == "pytorch":
        import torch

        return Network.from_torch(original, torch.from_numpy(x[:1].repeat(2, 0)))
    return Network.from_keras(original)


def _deep500(framework: str, original: Any, x: np.ndarray, **options: Any) -> Run:
    executor = FRAMEWORKS.get(framework).from_model(_exported(framework, original, x), **options)
    (name,), (output,) = executor.network.inputs, executor.network.outputs
    feeds = {name: executor.to_native(x, executor.network.inputs[name])}
    executor.inference(feeds)
    if options and not executor.compilation["inference"].startswith("compiled"):
        print(f"  {executor.compilation['inference']}", file=sys.stderr)
    return lambda: executor.inference(feeds)[output]


def _onnxruntime(framework: str, original: Any, x: np.ndarray) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    proto = _exported(framework, original, x).to_proto()
    # Threads that wait by spinning would take a core from whoever runs next in this process.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {session.get_inputs()[0].name: x}
    return lambda: session.run(None, feeds)[0]


def _onnx2pytorch(framework: str, original: Any, x: np.ndarray) -> Run:
    import onnx2pytorch
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        _exported(framework, original, x).save(path)
        module = onnx2pytorch.ConvertModel(__import__("onnx").load(path)).eval()
    return _torch_original(module, x) if isinstance(module, torch.nn.Module) else module


FORMS: dict[str, Callable[[str, Any, np.ndarray], Run]] = {
    "original": _original,
    "original-compiled": _original_compiled,
    "deep500": _deep500,
    "compiled": functools.partial(_deep500, compile=True),
    "onnxruntime": _onnxruntime,
    "onnx2pytorch": _onnx2pytorch,
}


def report(name: str, model: str, batch: int, launches: int, plan: SamplingPlan) -> bool:
    """Print one row; return whether the target is met."""
    framework, ours, theirs, limit = COMPARISONS[name]
    if theirs == "onnx2pytorch" and importlib.util.find_spec("onnx2pytorch") is None:
        print(f"| {name} | {model} | {batch} | onnx2pytorch is not installed | | | | |", flush=True)
        return True
    spec = f"benchmarks.inference:Inference,framework={framework},model={model},batch={batch},form="
    measurement = bench(
        spec + theirs, spec + ours, launches=launches, plan=plan, pairing="samples", labels=[theirs, ours]
    )
    found = compare([(measurement, system) for system in measurement.systems])
    row, base = found.rows[0], found.base
    interval = "none" if row.interval is None else f"{row.interval.low:.3f} .. {row.interval.high:.3f}"
    verdict = "-" if limit is None else f"at most {limit}: {'met' if row.ratio <= limit else 'MISSED'}"
    print(
        f"| {name} | {model} | {batch} | {row.system.absolute.estimate * 1e3:.3f} | {base.absolute.estimate * 1e3:.3f} "
        f"({theirs}) | {row.ratio:.3f} | {interval} | {verdict} |",
        flush=True,
    )
    return limit is None or row.ratio <= limit


def main() -> int:
    """Measure what the arguments name; exit with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comparison", nargs="*", default=list(COMPARISONS), help=", ".join(COMPARISONS))
    parser.add_argument("--model", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--batch", nargs="+", type=int, default=list(BATCHES))
    parser.add_argument("--launches", type=int, default=6, help="fresh processes (default 6)")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds of samples a launch (default 20)")
    arguments = parser.parse_args()
    print(f"{date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores\n")
    print("| comparison | model | batch | Deep500, ms | other, ms | ratio | interval | target |")
    print("|---|---|---|---|---|---|---|---|")
    plan = SamplingPlan(minimum_samples=20, time_limit_s=arguments.time_limit)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_FOLDER] = folder
        met = [
            report(name, model, batch, arguments.launches, plan)
            for name in arguments.comparison
            for model in arguments.model
            for batch in arguments.batch
        ]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
