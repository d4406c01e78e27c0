"""The cases: models with inputs and the outputs that the ONNX project expects."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test.loader import load_model_tests

#: Kinds of cases; the fourth one of the project, "real", downloads trained models.
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")

#: Operators whose outputs are drawn at random: their law is tested, not their values.
RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        name: Its name, without the leading ``test_``.
        kind: One of :data:`KINDS`.
        model: The model.
        data: Pairs of inputs and expected outputs.
        rtol: Relative tolerance that the project sets.
        atol: Absolute tolerance that the project sets.
    """

    name: str
    kind: str
    model: onnx.ModelProto
    data: Sequence[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float

    @property
    def operators(self) -> list[str]:
        """Operators of the model, with their domain unless it is ONNX' own."""
        return sorted({f"{node.domain}::{node.op_type}".removeprefix("::") for node in self.model.graph.node})


@functools.cache
def load_cases(kind: str) -> dict[str, Case]:
    """Return all cases of a kind by name, sorted."""
    cases = {}
    for test in load_model_tests(kind=kind):
        model, data = (test.model, test.data_sets) if test.model_dir is None else _stored(Path(test.model_dir))
        if model is None:
            continue
        pairs = [([_value(x) for x in inputs], [_value(y) for y in outputs]) for inputs, outputs in data]
        name = test.name.removeprefix("test_")
        cases[name] = Case(name, kind, model, pairs, test.rtol, test.atol)
    return dict(sorted(cases.items()))


def _stored(folder: Path) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    model = onnx.load(folder / "model.onnx")
    inputs = [value.type for value in model.graph.input]
    outputs = [value.type for value in model.graph.output]
    data = [
        (_read(part, "input", inputs), _read(part, "output", outputs))
        for part in sorted(folder.glob("test_data_set_*"))
        if part.is_dir()
    ]
    return model, data


def _read(folder: Path, what: str, types: Sequence[onnx.TypeProto]) -> list[Any]:
    values = []
    for index in range(len(list(folder.glob(f"{what}_*.pb")))):
        content = (folder / f"{what}_{index}.pb").read_bytes()
        kind = types[index].WhichOneof("value")
        message: Any = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(
            str(kind), onnx.TensorProto
        )()
        message.ParseFromString(content)
        values.append(message)
    return values


def _value(value: Any) -> Any:
    """Return what NumPy makes of a stored value; arrays, lists and None stay what they are."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    if isinstance(value, list):
        return [_value(entry) for entry in value]
    return np.asarray(value) if isinstance(value, np.generic) else value
