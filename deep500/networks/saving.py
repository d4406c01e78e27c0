"""Writing ONNX files, which appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError, EncodeError

from deep500.core.errors import InvalidNetworkError
from deep500.networks._tensor_values import stored_tensor

__all__ = ["INLINE_LIMIT", "check_inline", "save_model"]

#: Size of the tensors, in bytes, from which on they go to a file of their own: protobuf holds 2 GB in one.
INLINE_LIMIT = 2**31 - 2**24

#: Tensors below this size, in bytes, stay in the model's file.
_SMALL = 1024

#: Where tensors begin in their file, so that it can be mapped into memory.
_ALIGNMENT = 4096


def check_inline(model: ir.Model) -> None:
    """Check that a message of protobuf can hold a model.

    Raises:
        InvalidNetworkError: It cannot.
    """
    tensors = [value.const_value for value in model.graph.initializers.values()]
    size = sum(tensor.nbytes for tensor in tensors if tensor is not None)
    if size > INLINE_LIMIT:
        raise InvalidNetworkError(
            f"Network {model.graph.name!r} has {size:,} bytes in its tensors; a model in memory holds at most "
            f"{INLINE_LIMIT:,}. Save it: network.save('model.onnx') puts them into a second file."
        )


def save_model(
    model: ir.Model,
    path: str | PathLike[str],
    current: Callable[[str], Any] | None = None,
    *,
    external_data: bool | None = None,
) -> None:
    """Write a model so that the file appears whole or not at all.

    With external data, the tensors are in ``NAME.<number>.data`` beside the file, which is written first, under a name
    that the older model does not refer to: whoever reads the model's file at any time finds the tensors that belong to
    it. The older model's file of tensors is removed at the end.

    Args:
        model: The model.
        path: Where to.
        current: Returns the value of a stored tensor by its name; by default the model's own.
        external_data: Whether the tensors go to a file of their own; by default only if the model's file cannot hold
            them.

    Raises:
        InvalidNetworkError: The file cannot be written.
    """
    try:
        target = Path(path).resolve()  # what a link leads to is written, the link stays
        if target.exists() and not target.is_file():
            raise InvalidNetworkError(f"The network cannot be written to {path!r}: that is no regular file.")
        stored = model.graph.initializers
        size = sum(v.const_value.nbytes for v in stored.values() if v.const_value is not None)
        separate = size > INLINE_LIMIT if external_data is None else external_data
        proto = _without_tensors(model)
        older = _own_data_files(target)
        names = [name for name, value in stored.items() if value.const_value is not None]
        if separate:
            data = target.with_name(f"{target.name[:100]}.{uuid.uuid4().hex}.data")
            with _written(data) as file:
                proto.graph.initializer.extend(_placed(model, name, current, file, data.name) for name in names)
        else:
            proto.graph.initializer.extend(_tensor(model, name, current) for name in names)
        try:
            with _written(target) as file:
                file.write(proto.SerializeToString())
        except BaseException:
            if separate:
                data.unlink()
            raise
        for file_name in older:
            with contextlib.suppress(OSError):  # whoever may not remove it may still have written the new ones
                target.with_name(file_name).unlink()
    except (OSError, TypeError, ValueError, EncodeError) as error:
        if isinstance(error, InvalidNetworkError):
            raise
        raise InvalidNetworkError(f"The network cannot be written to {path!r}: {error}") from error


@contextlib.contextmanager
def _written(target: Path) -> Iterator[IO[bytes]]:
    """Give a file to write that replaces the target in the end."""
    # Beside the target, since only within one file system replacing is atomic.
    temporary = target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}.partial")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):  # it became the target
            os.unlink(temporary)


def _without_tensors(model: ir.Model) -> onnx.ModelProto:
    """Return the model without the values of its stored tensors, which may be more than one message holds."""
    values = list(model.graph.initializers.values())
    tensors = [value.const_value for value in values]
    try:
        for value in values:
            value.const_value = None
            model.graph.initializers.pop(str(value.name))
        proto: onnx.ModelProto = ir.to_proto(model)
    finally:
        for value, tensor in zip(values, tensors):
            value.const_value = tensor
            model.graph.initializers.add(value)
    # What is written of them besides, such as their roles, was left out with them.
    named = {info.name for info in (*proto.graph.input, *proto.graph.value_info)}
    proto.graph.value_info.extend(ir.to_proto(v) for v in values if v.metadata_props and v.name not in named)
    return proto


def _tensor(model: ir.Model, name: str, current: Callable[[str], Any] | None) -> onnx.TensorProto:
    stored = model.graph.initializers[name].const_value
    assert stored is not None
    tensor = stored if current is None else stored_tensor(current(name), name)
    proto: onnx.TensorProto = ir.to_proto(tensor)
    proto.name = name
    return proto


def _placed(
    model: ir.Model, name: str, current: Callable[[str], Any] | None, file: IO[bytes], location: str
) -> onnx.TensorProto:
    """Write a tensor to the file of tensors, unless it is small, and return what the model's file says of it."""
    proto = _tensor(model, name, current)
    if not proto.HasField("raw_data") or len(proto.raw_data) < _SMALL:
        return proto
    file.seek(-file.tell() % _ALIGNMENT, os.SEEK_CUR)
    offset, length = file.tell(), len(proto.raw_data)
    file.write(proto.raw_data)
    proto.ClearField("raw_data")
    proto.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        proto.external_data.add(key=key, value=str(value))
    return proto


def _own_data_files(target: Path) -> set[str]:
    """Return the files of tensors that an earlier call wrote for the model at a path."""
    pattern = re.compile(re.escape(target.name[:100]) + r"\.[0-9a-f]{32}\.data")
    if not any(pattern.fullmatch(entry.name) for entry in target.parent.iterdir()):
        return set()
    try:
        older = onnx.load(target, load_external_data=False)
    except (OSError, ValueError, DecodeError):  # there is none, or no model
        return set()
    named = {entry.value for tensor in older.graph.initializer for entry in tensor.external_data}
    return {name for name in named if pattern.fullmatch(name)}
