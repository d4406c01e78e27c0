"""What a case of kind "node" is about, to count float operators apart from texts, sequences and the like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

from tests.conformance.onnx_suite.cases import RANDOM, Case

__all__ = ["DIRECT_FLOAT", "category"]

#: Cases of an operator itself (not of the function that defines it) that reads and writes float32 or float64.
DIRECT_FLOAT = "float"

_BY_NAME = {
    "FlexAttention": r"flexattention",
    "quantised, floats of 8 bits and fewer": r".*quantize|qlinear|matmulinteger|convinteger",
    "DFT, STFT, windows": r"dft|stft|hann|hamming|blackman|melweight",
    "detection, images": r"roialign|nonmaxsuppression|image_decoder",
}
_NARROW = ("float8", "float4", "int4", "uint4", "int2", "uint2")


def category(case: Case) -> str:
    """Return the category of a case."""
    for found in (_by_model(case), _by_name(case)):
        if found:
            return found
    inputs, outputs = _dtypes(case)
    if any(name.startswith(_NARROW) for name in inputs | outputs):
        return "quantised, floats of 8 bits and fewer"
    if (inputs | outputs) & {"float16", "bfloat16"}:
        return "float16, bfloat16"
    wide = {"float32", "float64"}
    if not outputs & wide:
        return "integer, bool, index, compare"
    if not inputs & wide:
        return "integer to float, constants"
    return f"{DIRECT_FLOAT}, as a function" if "_expanded" in case.name else DIRECT_FLOAT


def _by_name(case: Case) -> str:
    return next((name for name, pattern in _BY_NAME.items() if re.match(pattern, case.name)), "")


def _by_model(case: Case) -> str:
    graph = case.model.graph
    values = [value.type for value in (*graph.input, *graph.output)]
    domains = {node.domain for node in graph.node}
    graphs = {onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS}
    if any(kind.WhichOneof("value") in ("sequence_type", "optional_type") for kind in values):
        return "sequence, optional"
    if "flexattention" in case.name:
        return ""
    if "_expanded" not in case.name and any(a.type in graphs for node in graph.node for a in node.attribute):
        return "control flow"
    if any(kind.tensor_type.elem_type == onnx.TensorProto.STRING for kind in values):
        return "string"
    if "ai.onnx.ml" in domains:
        return "ai.onnx.ml"
    if "ai.onnx.preview.training" in domains:
        return "preview.training"
    return "random" if not set(case.operators).isdisjoint(RANDOM) or case.name.startswith("training_dropout") else ""


def _dtypes(case: Case) -> tuple[set[str], set[str]]:
    inputs = {np.asarray(x).dtype.name for given, _ in case.data for x in _flat(given)}
    outputs = {np.asarray(y).dtype.name for _, expected in case.data for y in _flat(expected)}
    return inputs, outputs


def _flat(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        elif value is not None:
            yield value
