"""How operators are known to PyTorch's dispatcher: names, schemas, and one entry for equal operators."""

from __future__ import annotations

import copy
import hashlib
import threading
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from types import CodeType, FunctionType
from typing import Any

import torch
from torch.compiler import is_compiling

from deep500.core.errors import OperatorError
from deep500.core.texts import shown
from deep500.frameworks.pytorch._batching import make_batched
from deep500.frameworks.pytorch._dtypes import dtype_name, torch_dtype
from deep500.operators.custom import CustomOp, NativeOp
from deep500.operators.native import NativeLibrary

__all__ = [
    "NAMESPACE",
    "TorchOperator",
    "define",
    "definitions",
    "infer_like",
    "infer_types",
    "registered",
    "unique_name",
]

#: The namespace of all operators: ``torch.ops.deep500``.
NAMESPACE = "deep500"

#: Operators work with ``torch.compile`` and ``torch.export``, and take tensors of any strides.
_TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.flexible_layout)

_LOCK = threading.RLock()
_REGISTERED: dict[Any, TorchOperator] = {}
_NAMES: set[str] = set()


class TorchOperator:
    """A Deep500 operator as a function of PyTorch's tensors.

    It records for autograd, and is one node to ``torch.compile``, ``torch.export`` and ``torch.fx``.

    Attributes:
        op: The operator, as it was when it was given to ``custom_op``.
        overload: The dispatcher's entry, ``torch.ops.deep500.NAME.default``.
    """

    def __init__(self, op: CustomOp, overload: Any) -> None:
        """Take an operator and its entry in the dispatcher."""
        self.op = op
        self.overload = overload
        self._call = overload._op  # without the layers of Python on the way, a fifth of a small call

    def __call__(self, *tensors: torch.Tensor | None) -> Any:
        """Run the operator on tensors, ``None`` for absent ones; return a tensor, or a tuple of several.

        Raises:
            OperatorError: The operator refuses the tensors, or fails.
        """
        try:
            return self.overload(*tensors) if is_compiling() else self._call(*tensors)
        except (RuntimeError, TypeError) as error:  # among them the dispatcher's, of arguments that it cannot take
            _explain(self.op, tensors, error)
            raise

    def __deepcopy__(self, memo: Any) -> TorchOperator:
        """Return the same object, which never changes; copies of modules share it."""
        return self

    def __reduce__(self) -> Any:
        """Store the operator; its entry is made anew."""
        from deep500.frameworks.pytorch.custom_operator import custom_op

        return custom_op, (self.op,)

    def __repr__(self) -> str:
        """Return the operator and its entry."""
        return f"<{self.op!r} as torch.ops.{self.overload}>"


class ListOperator(TorchOperator):
    """The same for an operator with any number of inputs."""

    def __call__(self, *tensors: torch.Tensor | None) -> Any:
        """Run the operator; see :class:`TorchOperator`."""
        try:
            return self.overload(list(tensors)) if is_compiling() else self._call(list(tensors))
        except (RuntimeError, TypeError) as error:
            _explain(self.op, tensors, error)
            raise


def _explain(op: CustomOp, tensors: Sequence[Any], error: Exception) -> None:
    """Raise what is wrong with the arguments of a call, if anything is."""
    if op.input_count is not None and len(tensors) != op.input_count:
        raise OperatorError(f"{op.name} was given {len(tensors)} inputs; accepted are {op.input_count}.") from error
    for index, tensor in enumerate(tensors):
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise OperatorError(
                f"{op.name} was given {shown(tensor)} as input {index}; accepted are torch.Tensor. Use torch.as_tensor."
            ) from error
        if tensor is None and "NoneType" in str(error):
            raise OperatorError(f"{op.name}: input {index} is absent; it has to be given.") from error
    if isinstance(error, NotImplementedError):
        kinds = ", ".join(sorted({f"{t.layout} on {t.device}" for t in tensors if t is not None}))
        raise OperatorError(
            f"{op.name} was given tensors of {kinds}; accepted are dense tensors on the processor or a GPU."
        ) from error


@cache
def definitions() -> Any:
    """Return the library that holds the schemas."""
    return torch.library.Library(NAMESPACE, "FRAGMENT")


def registered(op: CustomOp, register: Callable[[CustomOp], Any]) -> TorchOperator:
    """Return an operator's function, made by ``register`` unless an equal operator has one.

    Entries stay until the process ends, for compiled graphs may hold them; so equal operators share one.
    """
    with _LOCK:
        key = _state(op)
        found = _REGISTERED.get(key)
        if found is None:
            frozen = copy.copy(op)  # what is changed in it later shall not change what PyTorch has compiled
            kind = ListOperator if op.input_count is None else TorchOperator
            found = kind(frozen, register(frozen))
            if key is not None:
                _REGISTERED[key] = found
        return found


def unique_name(op: CustomOp) -> str:
    """Return a name in the dispatcher that the same operator has in every process.

    PyTorch's caches of compiled graphs, and exported programs, refer to operators by it. So it depends on all that a
    graph was compiled for: the attributes, and how shapes are inferred.
    """
    parts: list[Any] = [type(op).__module__, type(op).__qualname__, op.name, sorted(op.attributes.items())]
    parts += [op.input_count, op.output_count, op.differentiable, op.gradient_needs, _code(type(op).infer)]
    parts += [(key, _code(value)) for key, value in sorted(vars(op).items()) if key not in _computed(type(op))]
    if isinstance(op, NativeOp):
        parts.append(op.library.description)
    name = f"{op.name}_{hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest()}"
    unique, number = name, 1
    while unique in _NAMES:
        number += 1
        unique = f"{name}_{number}"
    _NAMES.add(unique)
    return unique


def define(op: CustomOp, name: str, schema: str, fake: Callable[..., Any]) -> Any:
    """Define an entry of the dispatcher, what tracing gets from it, and how it is batched; return it."""
    library = definitions()
    library.define(name + schema, tags=_TAGS)
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=library)
    entry = getattr(getattr(torch.ops, NAMESPACE), name).default
    torch.library.register_vmap(f"{NAMESPACE}::{name}", make_batched(entry, op.name), lib=library)
    return entry


def infer_like(op: CustomOp, inputs: Sequence[torch.Tensor | None]) -> list[tuple[list[Any], torch.dtype]]:
    """Return shapes, perhaps symbolic, and dtypes of the outputs for these inputs.

    Raises:
        OperatorError: The inputs do not lie on one device, or the operator refuses them.
    """
    devices = {x.device: None for x in inputs if x is not None}
    if len(devices) != 1:
        if not devices:
            raise OperatorError(f"{op.name} was given no tensor.")
        raise OperatorError(
            f"{op.name} was given tensors on {' and on '.join(map(str, devices))}; accepted are tensors on one device. "
            f"Move them with .to(device)."
        )
    shapes = [None if x is None else tuple(x.shape) for x in inputs]
    return infer_types(op, shapes, [None if x is None else x.dtype for x in inputs])


def infer_types(
    op: CustomOp, shapes: Sequence[Any], dtypes: Sequence[torch.dtype | None]
) -> list[tuple[list[Any], torch.dtype]]:
    """Return shapes and dtypes of the outputs, pair by pair."""
    found, names = op.infer_outputs(shapes, [None if dtype is None else dtype_name(dtype) for dtype in dtypes])
    return [(list(shape), torch_dtype(name)) for shape, name in zip(found, names)]


def _state(op: CustomOp) -> Any:
    """Return all that two equal operators share; ``None`` where an operator cannot be compared."""
    try:
        computed = _computed(type(op))
        key = type(op), _frozen({name: value for name, value in vars(op).items() if name not in computed})
        hash(key)
    except TypeError:
        return None
    return key


@cache
def _computed(kind: type) -> frozenset[str]:
    """Return the names of what a class computes once it is asked, which is not part of an object's state."""
    everything = [pair for base in kind.__mro__ for pair in vars(base).items()]
    return frozenset(name for name, value in everything if isinstance(value, cached_property))


def _frozen(value: Any) -> Any:
    """Return a value in a form that can be compared, in which 1, 1.0 and True differ, and 0.0 and -0.0."""
    if isinstance(value, dict):
        return dict, tuple((name, _frozen(entry)) for name, entry in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_frozen, value))
    if isinstance(value, NativeLibrary):
        return NativeLibrary, value.path, value.name
    return type(value), repr(value) if isinstance(value, float) else value


def _code(value: Any) -> Any:
    """Return what a function does, or a plain value, in a form that is the same in every process; else ``None``."""
    if isinstance(value, FunctionType):
        return _code(value.__code__), [_code(cell.cell_contents) for cell in value.__closure__ or ()]
    if isinstance(value, CodeType):
        return value.co_code.hex(), value.co_names, [_code(constant) for constant in value.co_consts]
    if isinstance(value, (tuple, list)):
        return [_code(entry) for entry in value]
    if isinstance(value, dict):
        return [(_code(key), _code(entry)) for key, entry in value.items()]
    return value if isinstance(value, (bool, int, float, str)) else None
