"""Scan of opset 8, which had a batch axis before the axis that it scans."""

from __future__ import annotations

import onnx
import onnx.version_converter

from deep500.networks.normalise.old_form import NEWEST_OPSET, OldForm, OldNode

__all__ = ["SCAN"]


def _scan_each(old: OldNode) -> None:
    """Scan the batch, and for each of its entries the sequence: one Scan of today in another.

    Source: ONNX Scan-8, Scan-9.
    """
    if old.given(0):
        raise old.error("sequences of different lengths (sequence_lens) have none")
    attributes = old.attributes
    body = _converted(attributes["body"], old)
    given, scanned = list(old.node.input[1:]), int(attributes["num_scan_inputs"])
    entries = [f"{old.node.output[0]}.entry{index}" for index in range(len(given))]
    results = [f"{name or old.node.output[0]}.result{index}" for index, name in enumerate(old.node.output)]
    directions = list(attributes.get("directions", [])) or None
    inner = onnx.helper.make_node(
        "Scan", entries, results, body=body, num_scan_inputs=scanned, scan_input_directions=directions
    )
    outer = onnx.helper.make_graph(
        [inner],
        f"{body.name}.batch",
        [_entry(name, entry, old) for name, entry in zip(given, entries)],
        [_entry(name, result, old) for name, result in zip(old.node.output, results)],
    )
    old.finish("Scan", given, body=outer, num_scan_inputs=len(given))


def _entry(name: str, entry: str, old: OldNode) -> onnx.ValueInfoProto:
    """Declare one entry of a batch: the value without its first dimension."""
    shape = old.shape(name)
    element = old.element_type(name) or onnx.TensorProto.FLOAT
    return onnx.helper.make_tensor_value_info(entry, element, None if shape is None else shape[1:])


def _converted(body: onnx.GraphProto, old: OldNode) -> onnx.GraphProto:
    """Return the body in the newest opset, to which the version converter brings whole models only."""
    model = onnx.helper.make_model(body, opset_imports=[onnx.helper.make_opsetid("", old.opset)], ir_version=8)
    converted: onnx.GraphProto = onnx.version_converter.convert_version(model, NEWEST_OPSET).graph
    return converted


SCAN = (OldForm("Scan", (8, 8), _scan_each),)
