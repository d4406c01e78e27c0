"""Reading ONNX files."""

from __future__ import annotations

import logging
import os
import warnings
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError
from deep500.core.texts import message_of, shown
from deep500.networks._external_data import external_size, is_external, read_external
from deep500.networks._structure import PACKED, all_tensors, check_structure, expected_size
from deep500.networks.normalise.defaults import check_attributes, write_defaults
from deep500.networks.normalise.model import normalise_model

__all__ = ["load_exported", "load_model"]

_logger = logging.getLogger(__name__)

#: What protobuf can hold in one message, in bytes.
_PROTOBUF_LIMIT = 2**31 - 1

#: Stored tensors from this size on, in bytes, are set aside while the graph is checked and normalised: they are not
#: looked at, and copying them from tool to tool would take most of the time.
_SET_ASIDE = 2**16

#: How files begin that are often taken for models.
_MAGIC = {
    b"PK\x03\x04": "a ZIP archive (torch.save and Keras write those)",
    b"\x1f\x8b": "compressed by gzip",
    b"\x80\x02": "a Python pickle",
    b"\x80\x03": "a Python pickle",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"\x89PNG": "a picture",
    b"\x89HDF": "an HDF5 file",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
}


def load_model(
    source: str | PathLike[str] | bytes | IO[bytes] | onnx.ModelProto, *, max_size_bytes: int | None = None
) -> ir.Model:
    """Read, check and normalise a model.

    Args:
        source: A path, the bytes of a file, an open file, or a model.
        max_size_bytes: Largest size of the file and of the values that it keeps in other files, together.

    Raises:
        InvalidNetworkError: It cannot be read or is not valid ONNX.
    """
    if max_size_bytes is not None and (isinstance(max_size_bytes, bool) or not isinstance(max_size_bytes, int)):
        raise InvalidNetworkError(f"max_size_bytes was given as {shown(max_size_bytes)}; accepted is a whole number.")
    proto, origin, folder = _read(source, max_size_bytes)
    return _checked(proto, origin, _set_aside(proto, origin, folder, max_size_bytes))


def load_exported(model: ir.Model, origin: str) -> ir.Model:
    """Check and normalise a model that a framework's exporter made.

    Args:
        model: The model; it is used up.
        origin: How messages name it.

    Raises:
        InvalidNetworkError: It is not valid ONNX.
    """
    held: dict[str, ir.TensorProtocol] = {}
    for name, value in list(model.graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or tensor.nbytes < _SET_ASIDE:
            continue
        # A copy: the framework's model may be trained further.
        held[name] = ir.tensor(np.array(tensor.numpy()), name=name)
        value.shape, value.type = ir.Shape(tensor.shape.numpy()), ir.TensorType(tensor.dtype)
        value.const_value = None
        del model.graph.initializers[name]
        model.graph.inputs.append(value)
    proto = ir.to_proto(model)
    check_structure(proto, origin)
    return _checked(proto, origin, held)


def _checked(proto: onnx.ModelProto, origin: str, held: dict[str, ir.TensorProtocol]) -> ir.Model:
    """Check and normalise a model whose large tensors were set aside, and put them back."""
    write_defaults(proto)
    _complete_outputs(proto, origin)
    try:
        onnx.checker.check_model(proto, full_check=True)
    except Exception as error:
        # The checker raises ValidationError, InferenceError and, on broken models, plain ValueError or RuntimeError.
        raise InvalidNetworkError(f"{origin} is not valid ONNX: {message_of(error)}") from error
    check_attributes(proto)
    model = normalise_model(proto, origin)
    values = {value.name: value for value in model.graph.inputs}
    for name, tensor in held.items():
        value = values[name]
        model.graph.inputs.remove(value)
        value.const_value = tensor
        model.graph.register_initializer(value)
    return model


def _complete_outputs(proto: onnx.ModelProto, origin: str) -> None:
    """Declare the shapes of outputs that a model leaves open, which ONNX does not allow and exporters do.

    Raises:
        InvalidNetworkError: One cannot be inferred, or an input has none.
    """
    if not any(map(_lacks_shape, (*proto.graph.input, *proto.graph.output))):
        return
    inferred = {}
    try:
        inferred = {value.name: value for value in onnx.shape_inference.infer_shapes(proto).graph.output}
    except Exception as error:  # noqa: BLE001 - of unrelated types, as the checker's, which refuses what is wrong
        _logger.debug("The shapes of %s cannot be inferred: %s", origin, message_of(error))
    for what, values in (("input", proto.graph.input), ("output", proto.graph.output)):
        for value in values:
            if _lacks_shape(value) and what == "output" and value.name in inferred:
                value.type.CopyFrom(inferred[value.name].type)
            if _lacks_shape(value):
                raise InvalidNetworkError(
                    f"{origin} is not valid ONNX: {what} {value.name!r} is declared without a shape. Declare one; "
                    f"sizes that are not known may be names, such as ['batch', 3]."
                )


def _lacks_shape(value: onnx.ValueInfoProto) -> bool:
    return value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape")


def _read(source: Any, limit: int | None) -> tuple[onnx.ModelProto, str, Path | None]:
    """Return the model without what is in other files, how messages name it, and its folder."""
    if isinstance(source, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(source)
        return copy, f"The model {source.graph.name!r}", None
    if isinstance(source, bytes):
        return _parsed(source, "", "The given model", limit), "The given model", None
    if hasattr(source, "read") and not isinstance(source, PathLike):
        return _read_open(source, limit)
    if not isinstance(source, (str, PathLike)):
        raise InvalidNetworkError(
            f"A network was given as {type(source).__name__}; accepted are a path, the bytes of an ONNX file, an open "
            f"file, and an onnx.ModelProto."
        )
    path = os.fspath(source)
    origin = f"The file {path!r}"
    try:
        size = os.stat(path).st_size
        if size > _allowed(limit):
            raise InvalidNetworkError(f"{origin} has {size:,} bytes, {_excess(limit)}")
        with open(path, "rb") as file:
            content = file.read(_allowed(limit) + 1)  # a device or a pipe does not say its size, and may be endless
    except (OSError, ValueError) as error:  # a null byte is a ValueError
        if isinstance(error, InvalidNetworkError):
            raise
        raise InvalidNetworkError(f"{origin} cannot be read: {error}") from error
    return _parsed(content, str(path), origin, limit), origin, Path(path).parent


def _read_open(source: IO[bytes], limit: int | None) -> tuple[onnx.ModelProto, str, Path | None]:
    name = getattr(source, "name", None)
    origin = f"The file {name!r}" if isinstance(name, str) else "The open file"
    try:
        content = source.read(_allowed(limit) + 1)
    except Exception as error:
        # An object with a method read may raise anything, as may one that was closed.
        raise InvalidNetworkError(f"{origin} cannot be read: {message_of(error)}") from error
    if not isinstance(content, bytes):
        raise InvalidNetworkError(f"{origin} gives {type(content).__name__}; accepted is a file opened as binary.")
    folder = Path(name).parent if isinstance(name, str) and os.path.isfile(name) else None
    return _parsed(content, name if isinstance(name, str) else "", origin, limit), origin, folder


def _allowed(limit: int | None) -> int:
    return _PROTOBUF_LIMIT if limit is None else min(limit, _PROTOBUF_LIMIT)


def _excess(limit: int | None) -> str:
    if limit is not None and limit < _PROTOBUF_LIMIT:
        return f"more than max_size_bytes={limit:,} allows."
    return (
        f"and protobuf, ONNX' format, holds at most {_PROTOBUF_LIMIT:,} in one file. Save the model with its weights "
        f"in another file (external data)."
    )


def _parsed(content: bytes, path: str, origin: str, limit: int | None) -> onnx.ModelProto:
    """Return the model that a file's bytes hold, in the format that its suffix tells."""
    if len(content) > _allowed(limit):
        raise InvalidNetworkError(f"{origin} has {len(content):,} bytes, {_excess(limit)}")
    suffix = os.path.splitext(path)[1]
    name = onnx.serialization.registry.get_format_from_file_extension(suffix) if suffix else None
    serializer = onnx.serialization.registry.get(name or "protobuf")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that the textual formats are experimental
            proto: onnx.ModelProto = serializer.deserialize_proto(content, onnx.ModelProto())
    except Exception as error:
        # Each of the formats that onnx tells by the file's suffix has parse errors of its own, of unrelated types.
        raise InvalidNetworkError(f"{origin} is not an ONNX file: {_reason(content, error)}") from error
    if not content:
        raise InvalidNetworkError(f"{origin} is not an ONNX file: it is empty.")
    if not proto.HasField("graph") and _kind(content):
        raise InvalidNetworkError(f"{origin} is not an ONNX file: it is {_kind(content)}.")
    return proto


def _kind(content: bytes) -> str:
    return next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), "")


def _reason(content: bytes, error: Exception) -> str:
    kind = _kind(content)
    return f"it is {kind}." if kind else f"{message_of(error).rstrip('.')}. It may be cut off, or be of another kind."


def _set_aside(
    proto: onnx.ModelProto, origin: str, folder: Path | None, limit: int | None
) -> dict[str, ir.TensorProtocol]:
    """Check the tensors of a model, read those that are in other files, and take the large ones out of it.

    What is taken out becomes an input of the same name.
    """
    check_structure(proto, origin)
    external = [tensor for tensor, _ in all_tensors(proto) if is_external(tensor)]
    if external and folder is None:
        raise InvalidNetworkError(
            f"{origin} keeps the values of {external[0].name!r} in another file. Load it by the path of its file."
        )
    total = proto.ByteSize() + sum(map(external_size, external))
    if limit is not None and total > limit:
        raise InvalidNetworkError(f"{origin} has {total:,} bytes with all its values, {_excess(limit)}")
    held: dict[str, ir.TensorProtocol] = {}
    kept: list[onnx.TensorProto] = []
    for tensor in proto.graph.initializer:
        raw = _large_value(tensor, origin, folder)
        if raw is None:
            kept.append(tensor)
        else:
            dtype = ir.DataType(tensor.data_type)
            array = raw.view(dtype.numpy()).reshape(tuple(tensor.dims))
            held[tensor.name] = ir.Tensor(array, dtype, name=tensor.name, doc_string=tensor.doc_string or None)
            _declare(proto.graph, tensor)
    if held:
        kept = [onnx.TensorProto.FromString(tensor.SerializeToString()) for tensor in kept]
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)
    for tensor, _ in all_tensors(proto):
        if is_external(tensor) and folder is not None:
            tensor.raw_data = _external(tensor, origin, folder).tobytes()
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
    if proto.ByteSize() > _PROTOBUF_LIMIT:
        raise InvalidNetworkError(f"{origin} has more than {_PROTOBUF_LIMIT:,} bytes in small tensors or attributes.")
    return held


def _external(tensor: onnx.TensorProto, origin: str, folder: Path) -> NDArray[np.uint8]:
    try:
        return read_external(tensor, folder)
    except InvalidNetworkError as error:
        raise InvalidNetworkError(f"{origin} cannot be read: {error}") from error


def _large_value(tensor: onnx.TensorProto, origin: str, folder: Path | None) -> NDArray[np.uint8] | None:
    """Return the bytes of a stored tensor if they are many and one element is a number of whole bytes."""
    place = f"tensor {tensor.name!r}"
    if tensor.data_type in (onnx.TensorProto.STRING, *PACKED) or expected_size(tensor, place) < _SET_ASIDE:
        return None
    if is_external(tensor) and folder is not None:
        return _external(tensor, origin, folder)
    return np.frombuffer(bytearray(tensor.raw_data), np.uint8) if tensor.HasField("raw_data") else None


def _declare(graph: onnx.GraphProto, tensor: onnx.TensorProto) -> None:
    """Declare a tensor as an input, with what is written down of it."""
    if any(value.name == tensor.name for value in graph.input):
        return
    declared = graph.input.add()
    for index, value in enumerate(graph.value_info):
        if value.name == tensor.name:
            declared.CopyFrom(value)
            del graph.value_info[index]
            break
    declared.name = tensor.name
    declared.type.CopyFrom(onnx.helper.make_tensor_type_proto(tensor.data_type, tuple(tensor.dims)))
