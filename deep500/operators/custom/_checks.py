"""Checks of what an author's class says and returns, so that every mistake is named in one message."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.core.texts import shown

__all__ = [
    "AttributeValue",
    "InferredTypes",
    "Shape",
    "as_array",
    "as_tuple",
    "attribute_value",
    "check_name",
    "checked_gradients",
    "checked_types",
    "is_float_name",
    "texts",
]

#: What an attribute may be; what crosses the border to C++ and what ONNX stores in a node.
AttributeValue: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...]

#: One entry a dimension: an ``int``, or a framework's symbolic size that knows ``+ - * //``, ``max`` and ``min``.
Shape: TypeAlias = tuple[Any, ...]

#: Shapes and names of dtypes of all outputs.
InferredTypes: TypeAlias = tuple[tuple[Shape, ...], tuple[str, ...]]


def check_name(name: Any) -> str:
    """Return the name of an operator.

    Raises:
        OperatorError: It is not a C identifier.
    """
    if isinstance(name, str) and name.isascii() and name.isidentifier():
        return name
    raise OperatorError(
        f"{shown(name)} cannot name an operator. Accepted are letters, digits and '_', with no digit in front."
    )


def is_float_name(dtype: str | None) -> bool:
    """Whether a gradient can exist by tensors of a dtype: floats and complex numbers."""
    return dtype is not None and dtype.startswith(("float", "bfloat", "complex"))


def attribute_value(value: Any) -> AttributeValue | None:
    """Return a value in the form of an attribute; ``None`` where it is none that can be stored."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_, numbers.Integral)):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, (tuple, list)) and all(isinstance(entry, numbers.Real) for entry in value):
        if all(isinstance(entry, numbers.Integral) for entry in value):
            return tuple(int(entry) for entry in value)
        return tuple(float(entry) for entry in value)
    return None


def as_array(value: Any) -> Any:
    """Return a value as an array; arrays of other libraries, such as CuPy's, stay as they are."""
    return value if hasattr(value, "__array_function__") else np.asarray(value)


def as_tuple(result: Any) -> tuple[Any, ...]:
    results = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return tuple(None if r is None else as_array(r) for r in results)


def checked_types(name: str, count: int, returned: Any) -> InferredTypes:
    try:
        shapes, dtypes = returned
        shapes = tuple(tuple(shape) for shape in shapes)
        names = tuple(numpy_dtype(dtype).name for dtype in dtypes)
    except (TypeError, ValueError) as error:  # among them InvalidInputError of a text that is no dtype
        raise OperatorError(
            f"{name}.infer returned {shown(returned)}; accepted are two lists, the outputs' shapes and the outputs' "
            f"dtypes, such as ([(2, 3)], ['float32']). {error}"
        ) from error
    if len(shapes) != count or len(names) != count:
        raise OperatorError(
            f"{name}.infer returned {len(shapes)} shapes and {len(names)} dtypes; the operator has {count} outputs."
        )
    return tuple(tuple(_checked_size(name, size) for size in shape) for shape in shapes), names


def _checked_size(name: str, size: Any) -> Any:
    """Check a size if it is a number; symbolic sizes stay as they are."""
    if isinstance(size, (bool, float, str, np.floating)) or size is None:
        raise OperatorError(f"{name}.infer returned the size {shown(size)}; accepted are whole numbers (divide by //).")
    if isinstance(size, (int, np.integer)):
        if size < 0:
            raise OperatorError(f"{name}.infer returned the size {size}; accepted are sizes from 0 on.")
        return int(size)
    return size


def checked_gradients(
    name: str, gradients: Sequence[Any], inputs: Sequence[Any], *, are_given: bool = True
) -> tuple[Any, ...]:
    """Return the gradients of a backward, one for each input, in the input's dtype.

    Args:
        name: Name of the operator.
        gradients: What its backward returned.
        inputs: The inputs, ``None`` where there is none.
        are_given: Whether an input that is ``None`` is absent, and so is its gradient. An operator whose backward does
            not read the inputs need not be given them: then a gradient is kept, and its shape cannot be checked.

    Raises:
        OperatorError: There are more or fewer gradients, or one is not of its input's shape, or no float.
    """
    if len(gradients) != len(inputs):
        raise OperatorError(
            f"{name}.backward returned {len(gradients)} gradients for {len(inputs)} inputs; accepted is one for every "
            f"input, None where there is none."
        )
    checked: list[Any] = []
    for index, (gradient, x) in enumerate(zip(gradients, inputs)):
        if gradient is None or (x is None and are_given) or (x is not None and not is_float_name(x.dtype.name)):
            checked.append(None)
            continue
        if x is None:
            checked.append(gradient if is_float_name(gradient.dtype.name) else None)
            continue
        if gradient.shape != x.shape or not is_float_name(gradient.dtype.name):
            raise OperatorError(
                f"{name}.backward returned {gradient.dtype.name} of shape {tuple(gradient.shape)} as gradient by input "
                f"{index}; accepted is the input's: {x.dtype.name} of shape {tuple(x.shape)}."
            )
        checked.append(gradient if gradient.dtype == x.dtype else gradient.astype(x.dtype))
    return tuple(checked)


def texts(values: Sequence[Any]) -> str:
    return "(" + ", ".join(map(str, values)) + ")"
