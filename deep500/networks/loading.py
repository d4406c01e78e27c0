"""Reading and writing ONNX files."""

from __future__ import annotations

import os
import tempfile
from os import PathLike
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

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
    try:
        if isinstance(source, bytes):
            return onnx.load_model_from_string(source), "The given model"
        if not isinstance(source, (str, PathLike)):
            raise InvalidNetworkError(
                f"A network was given as {type(source).__name__}; accepted are a path, the bytes of an ONNX file, "
                f"and an onnx.ModelProto."
            )
        # onnx reads external data only from the model's own folder and refuses paths that leave it.
        return onnx.load(os.fspath(source)), f"The file {os.fspath(source)}"
    except DecodeError as error:
        origin = "The given model" if isinstance(source, bytes) else f"The file {os.fspath(source)}"
        raise InvalidNetworkError(f"{origin} is not an ONNX file: {error}") from error
    except (OSError, onnx.checker.ValidationError) as error:
        raise InvalidNetworkError(f"The network cannot be read: {error}") from error


def save_model(proto: onnx.ModelProto, path: str | PathLike[str]) -> None:
    """Write a model so that the file appears whole or not at all.

    Raises:
        InvalidNetworkError: The file cannot be written.
    """
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(proto.SerializeToString())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except (OSError, ValueError) as error:
        raise InvalidNetworkError(f"The network cannot be written to {target}: {error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
