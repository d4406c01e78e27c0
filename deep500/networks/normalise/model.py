"""Bringing a whole model to the one form that adapters translate."""

from __future__ import annotations

import onnx
import onnx.version_converter
import onnx_ir as ir
import onnx_ir.passes.common as passes

from deep500.core.errors import InvalidNetworkError

__all__ = ["OPSET_VERSION", "normalise_model"]

#: Opset of the networks that Deep500 builds, and the oldest that adapters need to understand.
OPSET_VERSION = 23


def normalise_model(proto: onnx.ModelProto, origin: str = "The model") -> ir.Model:
    """Return the model in the one form that adapters translate.

    Operators of older opsets are converted by the official version converter, functions of the model are inlined,
    Constant nodes become initializers, initializers are no longer inputs, and every shape that can be inferred is.

    Args:
        proto: A model that the checker accepts.
        origin: How messages name it.

    Raises:
        InvalidNetworkError: The version converter refuses the model.
    """
    version = next((opset.version for opset in proto.opset_import if opset.domain in ("", "ai.onnx")), None)
    if version is not None and version < OPSET_VERSION:
        try:
            proto = onnx.version_converter.convert_version(proto, OPSET_VERSION)
        except Exception as error:
            # The converter reports what it cannot convert by exceptions of several unrelated types.
            raise InvalidNetworkError(
                f"{origin} uses opset {version}, which cannot be converted to opset {OPSET_VERSION}: {error}"
            ) from error
    model = ir.from_proto(proto)
    for step in (
        passes.InlinePass(),
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.RemoveInitializersFromInputsPass(),
        passes.TopologicalSortPass(),
        passes.ShapeInferencePass(),
    ):
        model = step(model).model
    return model
