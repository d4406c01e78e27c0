"""The process in which damaged files are read and run: what crashes here ends nothing else."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
import os
import resource
import traceback
import warnings
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from deep500.core.errors import Deep500Error
from deep500.core.texts import message_of
from deep500.networks.network import Network
from deep500.networks.random_inputs import random_inputs
from tests.conformance.onnx_suite.cases import RANDOM

__all__ = ["serve"]

#: Memory that a worker may ask for, in bytes: frameworks reserve some that they never use.
_MEMORY = {"reference": 6 * 2**30, "": 24 * 2**30}

#: Elements of all inputs together, above which a network is not run.
_LARGEST = 2**22

#: Operators whose outputs nothing can be compared with.
_UNSURE = {*RANDOM, "Dropout"}


def serve(connection: Connection, framework: str) -> None:
    """Answer each file that comes through a connection with what became of it, phase by phase."""
    limit = _MEMORY.get(framework, _MEMORY[""])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    adapter = importlib.import_module(f"deep500.frameworks.{framework}")
    make = adapter.from_model
    oracle = importlib.import_module("onnxruntime") if importlib.util.find_spec("onnxruntime") else None
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection.send(("ready", ""))
    while True:
        content = connection.recv_bytes()
        if not content:
            return
        try:
            answer = _outcome(content, make, oracle, connection)
        except BaseException as error:  # noqa: BLE001 - it is the finding
            where = [frame for frame in traceback.extract_tb(error.__traceback__) if "deep500" in frame.filename]
            place = f"{os.path.basename(where[-1].filename)}:{where[-1].lineno}" if where else "?"
            answer = ("error", f"{type(error).__name__} at {place}: {message_of(error)[:200]}")
        connection.send(answer)


def _outcome(content: bytes, make: Any, oracle: Any, connection: Connection) -> tuple[str, str]:
    connection.send(("phase", "load"))
    try:
        network = Network.load(content)
        network.as_declared()
        connection.send(("phase", "run"))
        inputs = _inputs(network)
        executor = make(network)
        executor.network.as_declared()
        outputs = executor.inference(inputs)
        found = {name: executor.value_to_numpy(value) for name, value in outputs.items()}
    except Deep500Error as error:
        return "refused", type(error).__name__
    if oracle is None or _UNSURE & {node.op_type for node in network.model.graph.all_nodes()}:
        return "ran", ""
    connection.send(("phase", "oracle"))
    expected = _expected(content, oracle, inputs, list(found))
    if expected is None:
        return "ran", ""
    for (name, one), other in zip(found.items(), expected):
        if not _same(one, other):
            return "differs", f"{name}: {_shown(one)} and not {_shown(other)}"
    return "agrees", ""


def _inputs(network: Network) -> dict[str, Any]:
    sizes = [
        math.prod(d if isinstance(d, int) else 2 for d in kind.shape or ())
        for kind in network.inputs.values()
        if getattr(kind, "shape", None) is not None
    ]
    if sum(sizes) > _LARGEST:
        raise Deep500Error("too large to be run here")
    return random_inputs(network)


def _expected(content: bytes, oracle: Any, inputs: dict[str, Any], names: list[str]) -> list[Any] | None:
    """Return what ONNX Runtime computes from the same file, ``None`` where it does not."""
    options = oracle.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = oracle.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = oracle.InferenceSession(content, options)
        known = {value.name for value in session.get_inputs()}
        found: list[Any] = session.run(names, {name: x for name, x in inputs.items() if name in known})
    except Exception:  # noqa: BLE001 - it reports what it refuses by exceptions of its own
        return None
    return found


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)) or isinstance(other, (list, tuple)):
        return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(_same, one, other))
    if one is None or other is None:
        return one is other
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or (one.dtype != other.dtype and one.dtype.kind != "O"):
        return False
    if one.dtype.kind in "fc":
        return bool(np.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True))
    return bool(np.array_equal(one, other))


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)} {value.ravel()[:4].tolist()}"
    return repr(value)[:60]
