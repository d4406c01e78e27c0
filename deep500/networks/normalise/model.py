"""Bringing a whole model to the one form that adapters translate."""

from __future__ import annotations

import onnx
import onnx.defs
import onnx.version_converter
import onnx_ir as ir
import onnx_ir.passes.common as passes

from deep500.core.errors import InvalidNetworkError
from deep500.core.texts import message_of
from deep500.networks._structure import has_long_vectors
from deep500.networks.custom_node import infer_custom_nodes
from deep500.networks.normalise.gradient import expand_gradients
from deep500.networks.normalise.metadata import restore_metadata
from deep500.networks.normalise.old_form import NEWEST_OPSET, newest_forms, set_aside_old_forms
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = ["IR_VERSION", "OPSET_VERSION", "normalise_model"]

#: Opset of the networks that Deep500 builds, and the oldest that adapters need to understand.
OPSET_VERSION = NEWEST_OPSET

#: ONNX IR version that goes with the opset; the newest that every runtime of that opset reads.
IR_VERSION = 11


def normalise_model(proto: onnx.ModelProto, origin: str = "The model") -> ir.Model:
    """Return the model in the one form that adapters translate.

    Operators of older opsets are converted by the official version converter, or by a rule of ours where that is wrong
    (:mod:`deep500.networks.normalise.old_forms`), functions of the model are inlined,
    Constant nodes become initializers, initializers are no longer inputs, and every shape that can be inferred is.
    Initializers that the model did not have before are constants: nothing that stood in a node is trained.

    Args:
        proto: A model that the checker accepts.
        origin: How messages name it.

    Raises:
        InvalidNetworkError: The version converter refuses the model, or a tensor of it cannot be read.
    """
    proto = expand_gradients(proto)
    stored = {tensor.name for tensor in proto.graph.initializer}
    follows = not has_long_vectors(proto.graph)
    try:
        # Functions first: the converter drops their bodies.
        model = passes.InlinePass()(ir.from_proto(proto)).model
        _check_complete(model, origin)
        model = _converted(model, origin)
        for step in (
            passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
            passes.RemoveInitializersFromInputsPass(),
            passes.TopologicalSortPass(),
            passes.ShapeInferencePass(strict_mode=False, data_prop=follows),
        ):
            model = step(model).model
        # What ONNX does not know of custom operators they say themselves, and more may follow from it.
        while infer_custom_nodes(model.graph):
            model = passes.ShapeInferencePass(strict_mode=False, data_prop=follows)(model).model
    except InvalidNetworkError:
        raise
    except Exception as error:
        # What the checker lets through and onnx_ir cannot represent is reported by exceptions of unrelated types.
        raise InvalidNetworkError(f"{origin} cannot be normalised: {message_of(error)}") from error
    for name, value in model.graph.initializers.items():
        if name not in stored:
            value.metadata_props.setdefault(ROLE_KEY, TensorRole.CONSTANT.value)
    # Older versions list initializers among the inputs.
    model.ir_version = max(model.ir_version, IR_VERSION)
    return model


def _check_complete(model: ir.Model, origin: str) -> None:
    """Refuse values that are in another file: without a file of the model, it would be sought in the working folder."""
    tensors = [value.const_value for graph in model.graphs() for value in graph.initializers.values()]
    for node in model.graph.all_nodes():
        tensors += [a.value for a in node.attributes.values() if a.type == ir.AttributeType.TENSOR]
    for tensor in tensors:
        if isinstance(tensor, ir.ExternalTensor):
            raise InvalidNetworkError(
                f"{origin} keeps the values of {tensor.name!r} in another file. Load it by the path of its file."
            )


def _converted(model: ir.Model, origin: str) -> ir.Model:
    version = model.graph.opset_imports.get("")
    if version is None or OPSET_VERSION <= version <= onnx.defs.onnx_opset_version():
        return model
    if version > OPSET_VERSION:
        raise InvalidNetworkError(
            f"{origin} uses opset {version}; the installed ONNX {onnx.__version__} knows opsets up to "
            f"{onnx.defs.onnx_opset_version()}. Install a newer onnx."
        )
    try:
        proto, old = set_aside_old_forms(ir.to_proto(model), version)
        proto = onnx.version_converter.convert_version(proto, OPSET_VERSION)
        converted = ir.from_proto(newest_forms(proto, old))
    except InvalidNetworkError:
        raise
    except Exception as error:
        # The converter reports what it cannot convert by exceptions of several unrelated types.
        raise InvalidNetworkError(
            f"{origin} uses opset {version}, which cannot be converted to opset {OPSET_VERSION}: {message_of(error)}"
        ) from error
    restore_metadata(model, converted)
    return converted
