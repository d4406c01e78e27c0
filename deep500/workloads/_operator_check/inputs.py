"""Inputs for an operator: its author's, or made up from what is known of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from deep500.core.errors import Deep500Error, InvalidInputError, OperatorError
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import Dimension, TensorDescriptor, numpy_dtype
from deep500.core.texts import shown
from deep500.networks.random_inputs import random_tensor
from deep500.operators.custom import CustomOp, NativeOp
from deep500.operators.custom.findings import told
from deep500.operators.operator import OptionalArray

__all__ = ["Size", "dtypes_of", "example_inputs", "has_sizes", "read_descriptor"]

#: Small enough for numerical derivatives; of other sizes than these, for graphs that are traced once; large enough for
#: the work to take longer than the call.
Size: TypeAlias = Literal["small", "other", "large"]

#: Shape of an input of which nothing is known.
_SHAPE: tuple[Dimension, ...] = ("deep500.first", "deep500.second", "deep500.third")

#: Most elements of a large input.
_LARGEST = 1 << 20

#: Dtypes of operators in Python.
_DTYPES = ("float32", "float64")


def read_descriptor(text: str, dtype: str = "float32") -> TensorDescriptor:
    """Return what ``"2x3x4"``, ``"5:int64"`` or ``"scalar"`` describes.

    Args:
        text: Sizes, and perhaps a dtype.
        dtype: The dtype where the text has none.

    Raises:
        OperatorError: It is none of these.
    """
    sizes, colon, named = str(text).strip().partition(":")
    if not re.fullmatch(r"scalar|[0-9]{1,18}(x[0-9]{1,18})*", sizes.lower()):
        raise OperatorError(
            f"{shown(text)} describes no input; accepted are shapes such as 2x3x4 or scalar, with another dtype after "
            f"a colon, such as 5:int64."
        )
    shape = [] if sizes.lower() == "scalar" else [int(size) for size in sizes.lower().split("x")]
    try:
        return TensorDescriptor(named.strip() if colon else dtype, shape)
    except InvalidInputError as error:
        raise OperatorError(f"{shown(text)} describes no input: {error}") from error


def dtypes_of(op: CustomOp, given: Sequence[TensorDescriptor] | None = None) -> list[str]:
    """Return the dtypes in which an operator is to be checked.

    Args:
        op: The operator.
        given: What the user says of the inputs.
    """
    described = given or _descriptors(op)
    if described:
        floats = [d.dtype for d in described if d.dtype.startswith(("float", "bfloat"))]
        return [floats[0] if floats else described[0].dtype]
    if isinstance(op, NativeOp):
        said = op.library.description
        return list(said.dtypes) or [signature.inputs[0] for signature in said.signatures if signature.inputs]
    return list(getattr(op, "dtypes", None) or _DTYPES)


def example_inputs(
    op: CustomOp,
    dtype: str,
    size: Size = "small",
    *,
    given: Sequence[TensorDescriptor] | None = None,
    seed: int = 0,
) -> list[OptionalArray] | None:
    """Return inputs of an operator; the same ones for the same arguments, in every process.

    They are what :meth:`CustomOp.example_inputs` returns. Where that returns nothing they are made up: of the shapes
    that the user or the operator's descriptors say, else of the shape ``[2, 3, 4]``; floats are normally distributed,
    or uniform in [0.5, 1.5) where the operator is not finite on these.

    Args:
        op: The operator.
        dtype: Which of its dtypes.
        size: How large they are to be.
        given: What the user says of the inputs; it goes before what the author says.
        seed: Seed of the values.

    Returns:
        One array an input; ``None`` where there are none of this size, since shapes are fixed.

    Raises:
        OperatorError: The author's method fails or returns no arrays, or none can be made up.
    """
    if given is None:
        found = _authors_inputs(op, dtype, size, seed)
        if found is not None:
            return None if found == [] else found
    descriptors = _sized(_described(op, dtype, given), size)
    if descriptors is None:
        return None
    inputs: list[OptionalArray] = []
    for positive in (False, True):
        streams = [random_stream(seed, "operator", index) for index in range(len(descriptors))]
        inputs = [random_tensor(d, stream, positive=positive) for d, stream in zip(descriptors, streams)]
        if positive or _is_finite_on(op, inputs):
            break
    return inputs


def has_sizes(op: CustomOp, dtype: str, given: Sequence[TensorDescriptor] | None = None) -> bool:
    """Whether there are inputs of other sizes than the small ones; the operator is not run for it.

    Args:
        op: The operator.
        dtype: Which of its dtypes.
        given: What the user says of the inputs.

    Raises:
        OperatorError: The author's method fails or returns no arrays.
    """
    if given is None and _authors_inputs(op, dtype, "small", 0) is not None:
        return _knows_sizes(op)
    return bool(_symbols(_described(op, dtype, given)))


def _knows_sizes(op: CustomOp) -> bool:
    """Whether an author's method can be asked for large inputs."""
    parameters = inspect.signature(op.example_inputs).parameters
    return "large" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _authors_inputs(op: CustomOp, dtype: str, size: Size, seed: int) -> list[OptionalArray] | None:
    """Return the author's inputs, an empty list where there are none of this size, ``None`` where there are none."""
    options = {"large": True} if size != "small" and _knows_sizes(op) else {}
    try:
        returned: Any = op.example_inputs(random_stream(seed, "operator", "example"), dtype, **options)
    except Exception as error:
        raise OperatorError(f"{op.name}.example_inputs failed for {dtype}: {told(error)}") from error
    if returned is None:
        return None
    if size != "small" and not options:
        return []
    if not isinstance(returned, (list, tuple)) or not returned:
        raise OperatorError(
            f"{op.name}.example_inputs returned {shown(returned)}; accepted is a list with one array an input, None "
            f"for absent ones."
        )
    arrays = [None if x is None else np.asarray(x) for x in returned]
    for index, x in enumerate(arrays):
        if x is not None and x.dtype == object:
            raise OperatorError(f"{op.name}.example_inputs returned {shown(returned[index])} as input {index}.")
    return _converted(op, arrays, dtype) if isinstance(op, NativeOp) else arrays


def _converted(op: NativeOp, arrays: list[OptionalArray], dtype: str) -> list[OptionalArray]:
    """Return arrays in the dtypes of the operator's variant."""
    names = _signature(op, dtype)
    if len(names) != len(arrays):
        raise OperatorError(f"{op.name}.example_inputs returned {len(arrays)} arrays; the operator has {len(names)}.")
    return [None if x is None else x.astype(numpy_dtype(name)) for x, name in zip(arrays, names)]


def _signature(op: NativeOp, dtype: str) -> tuple[str, ...]:
    """Return the dtypes of the inputs of a variant."""
    said = op.library.description
    if dtype in said.dtypes and len(said.dtypes) == len(said.signatures):
        return said.signatures[said.dtypes.index(dtype)].inputs
    found = next((s.inputs for s in said.signatures if dtype in s.inputs), None)
    return found or said.signatures[0].inputs


def _described(op: CustomOp, dtype: str, given: Sequence[TensorDescriptor] | None) -> list[TensorDescriptor]:
    """Return what is known of the inputs; sizes may be symbols."""
    described = given or _descriptors(op)
    if described:
        if op.input_count is not None and len(described) != op.input_count:
            raise OperatorError(
                f"{op.name} has {op.input_count} inputs; {len(described)} were described. Give --input once for each."
            )
        return [TensorDescriptor(d.dtype, _SHAPE if d.shape is None else d.shape) for d in described]
    if isinstance(op, NativeOp):
        return [TensorDescriptor(name, _SHAPE) for name in _signature(op, dtype)]
    return [TensorDescriptor(dtype, _SHAPE)] * _input_count(op)


def _descriptors(op: CustomOp) -> Sequence[TensorDescriptor] | None:
    return getattr(op, "input_descriptors", None)


def _input_count(op: CustomOp) -> int:
    """Return how many inputs an operator in Python has: as many as its forward has parameters."""
    if op.input_count is not None:
        return op.input_count
    parameters = list(inspect.signature(op.forward).parameters.values())
    required = [
        p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return max(1, len(required))


def _sized(descriptors: Sequence[TensorDescriptor], size: Size) -> list[TensorDescriptor] | None:
    """Give numbers to symbolic sizes; ``None`` where there is no symbol, and the size is to be another than the small.

    Small ones are 2, 3, 4, ... in the order in which symbols occur, so that mixing them up shows.
    """
    symbols = _symbols(descriptors)
    if not symbols:
        return list(descriptors) if size == "small" else None
    shift = 1 if size == "other" else 0
    numbers: dict[Dimension, int] = {symbol: 2 + index + shift for index, symbol in enumerate(symbols)}
    factor = 1
    while size == "large" and _most_elements(descriptors, numbers, 2 * factor) <= _LARGEST and factor < _LARGEST:
        factor *= 2
    return [TensorDescriptor(d.dtype, _numbered(d, numbers, factor)) for d in descriptors]


def _symbols(descriptors: Sequence[TensorDescriptor]) -> list[Dimension]:
    return list(dict.fromkeys(size for d in descriptors for size in d.shape or () if not isinstance(size, int)))


def _numbered(descriptor: TensorDescriptor, numbers: Mapping[Dimension, int], factor: int) -> list[int]:
    return [size if isinstance(size, int) else numbers[size] * factor for size in descriptor.shape or ()]


def _most_elements(descriptors: Sequence[TensorDescriptor], numbers: Mapping[Dimension, int], factor: int) -> int:
    return max(TensorDescriptor(d.dtype, _numbered(d, numbers, factor)).element_count or 0 for d in descriptors)


def _is_finite_on(op: CustomOp, inputs: Sequence[OptionalArray]) -> bool:
    """Whether all outputs are finite; an operator that refuses the inputs is left to the checks."""
    try:
        with np.errstate(all="ignore"):
            outputs = op.run_forward(inputs)
        return all(np.isfinite(y.astype(np.float64)).all() for y in outputs if y.dtype.kind not in "biuc")
    except (Deep500Error, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return True
