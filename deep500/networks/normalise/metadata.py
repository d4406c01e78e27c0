"""What is written down of values beside their type, which ONNX' own tools drop."""

from __future__ import annotations

import onnx_ir as ir

__all__ = ["restore_metadata"]


def restore_metadata(before: ir.Model, after: ir.Model) -> None:
    """Write down of the inputs, outputs and stored tensors of a model what another model says of them.

    Args:
        before: The model that says it.
        after: The model that is changed; its values are found by name.
    """
    known = {value.name: value for value in _values(before)}
    for value in _values(after):
        if value.name in known:
            value.metadata_props.update(known[value.name].metadata_props)


def _values(model: ir.Model) -> list[ir.Value]:
    return [*model.graph.inputs, *model.graph.outputs, *model.graph.initializers.values()]
