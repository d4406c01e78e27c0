"""Running one operator of ONNX under PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.helper as helper
import onnx.numpy_helper
from onnx.reference import ReferenceEvaluator

from deep500.frameworks.pytorch import backend


def code_of(array: Any) -> int:
    """Return ONNX' number of an array's element type."""
    kind = np.asarray(array).dtype
    return onnx.TensorProto.STRING if kind.kind in "OU" else int(helper.np_dtype_to_tensor_dtype(kind))


def single_node(
    op_type: str,
    inputs: Sequence[Any],
    *,
    outputs: int = 1,
    results: Sequence[Any] | None = None,
    stored: bool = False,
    domain: str = "",
    version: int = 28,
    **attributes: Any,
) -> onnx.ModelProto:
    """Return a model of one node; all sizes of its inputs are symbols.

    Args:
        op_type: The operator.
        inputs: An array an input, ``None`` where it is absent.
        outputs: Number of outputs.
        results: Arrays of the outputs' dtypes and ranks, where ONNX does not infer them.
        stored: Whether all inputs but the first are stored in the model.
        domain: The operator's domain.
        version: Version of the domain.
        **attributes: The attributes.
    """
    names = ["" if value is None else f"i{index}" for index, value in enumerate(inputs)]
    node = helper.make_node(op_type, names, [f"o{k}" for k in range(outputs)], domain=domain, **attributes)
    given = [(name, np.asarray(value)) for name, value in zip(names, inputs) if name]
    fed = given[:1] if stored else given
    infos = [
        helper.make_tensor_value_info(name, code_of(value), [f"{name}_{axis}" for axis in range(value.ndim)])
        for name, value in fed
    ]
    kept = [onnx.numpy_helper.from_array(value, name) for name, value in given[len(fed) :]]
    ends = [helper.make_empty_tensor_value_info(f"o{k}") for k in range(outputs)]
    if results is not None:
        arrays = [np.asarray(value) for value in results]
        ends = [
            helper.make_tensor_value_info(f"o{k}", code_of(y), [f"o{k}_{axis}" for axis in range(y.ndim)])
            for k, y in enumerate(arrays)
        ]
    imports = [helper.make_opsetid("", 28), *([helper.make_opsetid(domain, version)] if domain else [])]
    model = helper.make_model(
        helper.make_graph([node], "node", infos, ends, kept), opset_imports=imports, ir_version=11
    )
    return onnx.shape_inference.infer_shapes(model)


def run(op_type: str, inputs: Sequence[Any], *, expected: Any = None, **settings: Any) -> tuple[Any, ...]:
    """Run one node under PyTorch, with its inputs fed and, but for the first, stored; both runs must agree.

    Args:
        op_type: The operator.
        inputs: As for :func:`single_node`.
        expected: What an only output resembles in dtype and rank, where ONNX does not infer it.
        **settings: As for :func:`single_node`.
    """
    results = None if expected is None else [expected]
    given = [np.asarray(value) for value in inputs if value is not None]
    fed = backend.run_model(single_node(op_type, inputs, results=results, **settings), given)
    stored = backend.run_model(single_node(op_type, inputs, results=results, stored=True, **settings), given[:1])
    for first, second in zip(fed, stored, strict=True):
        np.testing.assert_array_equal(first, second)
        assert first.dtype == second.dtype
    return tuple(fed)


def evaluate(op_type: str, inputs: Sequence[Any], **settings: Any) -> tuple[Any, ...]:
    """Return what ONNX' reference makes of one node."""
    feeds = {f"i{index}": value for index, value in enumerate(inputs) if value is not None}
    return tuple(ReferenceEvaluator(single_node(op_type, inputs, **settings)).run(None, feeds))
