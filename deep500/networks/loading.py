"""Reading and writing ONNX files."""

from __future__ import annotations

import contextlib
import os
import uuid
from os import PathLike
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError, Message

from deep500.core.errors import InvalidNetworkError
from deep500.networks.normalise.model import normalise_model

__all__ = ["load_model", "save_model"]


def load_model(source: str | PathLike[str] | bytes | onnx.ModelProto) -> ir.Model:
    """Read, check and normalise a model.

    Args:
        source: A path, the bytes of a file, or a model.

    Raises:
        InvalidNetworkError: It cannot be read or is not valid ONNX.
    """
    proto, origin = _read(source)
    broken = _first_broken_text(proto)
    if broken is not None:
        raise InvalidNetworkError(f"{origin} is not valid ONNX: the text {broken!r} is not UTF-8.")
    try:
        onnx.checker.check_model(proto, full_check=True)
    except Exception as error:
        # The checker raises ValidationError, InferenceError and, on broken models, plain ValueError or RuntimeError.
        raise InvalidNetworkError(f"{origin} is not valid ONNX: {error}") from error
    return normalise_model(proto, origin)


def _read(source: str | PathLike[str] | bytes | onnx.ModelProto) -> tuple[onnx.ModelProto, str]:
    if isinstance(source, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(source)
        return copy, f"The model {source.graph.name!r}"
    if not isinstance(source, (str, bytes, PathLike)):
        raise InvalidNetworkError(
            f"A network was given as {type(source).__name__}; accepted are a path, the bytes of an ONNX file, "
            f"and an onnx.ModelProto."
        )
    origin = "The given model" if isinstance(source, bytes) else f"The file {os.fspath(source)!r}"
    try:
        if isinstance(source, bytes):
            return onnx.load_model_from_string(source), origin
        # onnx reads external data only from the model's own folder and refuses paths that leave it.
        return onnx.load(os.fspath(source)), origin
    except (OSError, onnx.checker.ValidationError) as error:
        raise InvalidNetworkError(f"{origin} cannot be read: {error}") from error
    except Exception as error:
        # Each of the formats that onnx tells by the file's suffix has parse errors of its own, of unrelated types.
        raise InvalidNetworkError(f"{origin} is not an ONNX file: {error}") from error


def _first_broken_text(message: Message) -> bytes | None:
    """Return a text field that is not UTF-8: protobuf gives it as bytes, which no later stage expects."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for part in [value] if isinstance(value, Message) else value:
                found = _first_broken_text(part)
                if found is not None:
                    return found
        elif field.type == FieldDescriptor.TYPE_STRING:
            for text in [value] if isinstance(value, (str, bytes)) else value:
                if isinstance(text, bytes):
                    return text
    return None


def save_model(proto: onnx.ModelProto, path: str | PathLike[str]) -> None:
    """Write a model so that the file appears whole or not at all.

    Raises:
        InvalidNetworkError: The file cannot be written.
    """
    try:
        target = Path(path).resolve()  # what a link leads to is written, the link stays
        if target.exists() and not target.is_file():
            raise InvalidNetworkError(f"The network cannot be written to {path!r}: that is no regular file.")
        # Beside the target, since only within one file system replacing is atomic.
        temporary = target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}.partial")
        try:
            with open(temporary, "xb") as file:
                file.write(proto.SerializeToString())
            os.replace(temporary, target)
        finally:
            with contextlib.suppress(FileNotFoundError):  # it became the target
                os.unlink(temporary)
    except (OSError, TypeError, ValueError, EncodeError) as error:
        raise InvalidNetworkError(f"The network cannot be written to {path!r}: {error}") from error
