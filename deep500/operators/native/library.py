"""A compiled operator: the shared library, what it says of itself, and the addresses of its functions."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from deep500.core.errors import OperatorError
from deep500.core.texts import shown_path

__all__ = ["ABI_VERSION", "LibraryDescription", "NativeLibrary", "Signature", "Which"]

#: ``DEEP500_ABI_VERSION`` of the headers that come with this Deep500.
ABI_VERSION = 1

#: The functions of an operator.
Which: TypeAlias = Literal["forward", "backward", "second"]


@dataclass(frozen=True)
class Signature:
    """Dtypes of one compiled variant: one name an input, and one an output."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class LibraryDescription:
    """What a library says of its operator.

    Attributes:
        name: Name of the operator.
        inputs: Number of inputs.
        outputs: Number of outputs.
        dtypes: The dtypes for which it was compiled.
        signatures: Dtypes of inputs and outputs of every variant, in the order of ``dtypes``.
        optional_inputs: Indices of inputs that may be absent.
        devices: ``"cpu"``, ``"cuda"`` or both.
        attributes: Kind of every attribute: ``"int"``, ``"float"``, ``"string"``, ``"ints"`` or ``"floats"``.
        defaults: Values of those attributes that may be left out.
        differentiable: Whether there is a backward.
        twice_differentiable: Whether there is a backward of the backward.
        gradient_needs_inputs: Whether the backward reads the forward's inputs.
        gradient_needs_outputs: Whether the backward reads the forward's outputs. Where it does not, whoever calls it
            without them has to give zeros for a gradient that nobody knows: C++ cannot tell its shape.
    """

    name: str
    inputs: int
    outputs: int
    dtypes: tuple[str, ...]
    signatures: tuple[Signature, ...] = ()
    optional_inputs: frozenset[int] = frozenset()
    devices: tuple[str, ...] = ("cpu",)
    attributes: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    differentiable: bool = False
    twice_differentiable: bool = False
    gradient_needs_inputs: bool = True
    gradient_needs_outputs: bool = True


class NativeLibrary:
    """A shared library that was compiled from an operator's C++ or CUDA sources, loaded.

    It stays loaded until the process ends.

    Attributes:
        path: Where it lies.
        name: Name of its operator.
        description: What it says of its operator.
    """

    def __init__(self, path: str | PathLike[str], name: str) -> None:
        """Load a library.

        Args:
            path: The library, as :func:`~deep500.operators.native.build.compile_library` returns it.
            name: Name of the operator.

        Raises:
            OperatorError: It cannot be loaded, holds another operator, or was built for another version of the border.
        """
        self.path = Path(path)
        self.name = name
        try:
            self._handle = ctypes.CDLL(str(self.path), mode=ctypes.DEFAULT_MODE)  # local: symbols of others stay hidden
        except OSError as error:
            raise OperatorError(f"The library of operator {name!r} cannot be loaded: {error}") from error
        self.description = _read_description(self._function("describe"), self.path, name)
        self._function("forward")

    def symbol_name(self, which: Which) -> str:
        """Return the name under which the library exports a function, such as ``"d5_ipow_forward"``."""
        return f"d5_{self.name}_{which}"

    def has(self, which: Which) -> bool:
        """Whether the operator has a function: every one has a forward."""
        return {
            "forward": True,
            "backward": self.description.differentiable,
            "second": self.description.twice_differentiable,
        }[which]

    def symbol(self, which: Which) -> int:
        """Return the address of a function of the border (``d5_function``); 0 where the operator has none."""
        if not self.has(which):
            return 0
        return ctypes.cast(self._function(which), ctypes.c_void_p).value or 0

    def report(self, data: int = 0) -> int:
        """Return what ``report(void* data)`` does, which only classes that derive from ``CustomOperator`` have.

        Args:
            data: Address that is handed on.

        Raises:
            OperatorError: The library has no such function.
        """
        function = self._function("report")
        function.restype = ctypes.c_int64
        return int(function(ctypes.c_void_p(data)))

    def _function(self, which: str) -> Any:
        symbol = f"d5_{self.name}_{which}"
        try:
            return getattr(self._handle, symbol)
        except AttributeError as error:
            raise OperatorError(
                f"{shown_path(self.path)} has no function {symbol}. Its source must register the operator under the "
                f"name that it is compiled for, by D500_OPERATOR({self.name}, Class) or by D500_REGISTER_OP(Class)."
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles load the library again, from its path."""
        return NativeLibrary, (str(self.path), self.name)

    def __repr__(self) -> str:
        """Return the name and the path."""
        return f"<NativeLibrary {self.name!r} at {shown_path(self.path)}>"


def _read_description(describe: Any, path: Path, name: str) -> LibraryDescription:
    describe.restype = ctypes.c_char_p
    text = describe() or b""
    try:
        said = json.loads(text)
        version = said["abi_version"]
        if version != ABI_VERSION:
            raise OperatorError(
                f"{shown_path(path)} was built for version {version} of the border between operators and Deep500; "
                f"this Deep500 has version {ABI_VERSION}. Compile the operator again."
            )
        needs = said.get("gradient_needs", {})
        return LibraryDescription(
            name=said["name"],
            inputs=said["inputs"],
            outputs=said["outputs"],
            dtypes=tuple(said["dtypes"]),
            signatures=tuple(Signature(tuple(i), tuple(o)) for i, o in said.get("signatures", [])),
            optional_inputs=frozenset(said.get("optional_inputs", [])),
            devices=tuple(said["devices"]),
            attributes=said["attributes"],
            defaults={key: tuple(v) if isinstance(v, list) else v for key, v in said.get("defaults", {}).items()},
            differentiable=said["differentiable"],
            twice_differentiable=said.get("twice_differentiable", False),
            gradient_needs_inputs=needs.get("inputs", True),
            gradient_needs_outputs=needs.get("outputs", True),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, OperatorError):
            raise
        raise OperatorError(
            f"d5_{name}_describe of {shown_path(path)} returned {text!r}, which is no description."
        ) from error
