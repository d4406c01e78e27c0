"""What has to hold of a model's messages before anything computes with them: sizes, names, depths, texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from deep500.core.errors import InvalidNetworkError

__all__ = ["PACKED", "all_tensors", "check_structure", "expected_size", "has_long_vectors"]

#: How deep graphs may be nested in graphs; the tools that read them call themselves once for each.
_DEEPEST = 32

#: How many nodes functions may stand for when the functions that it calls are written out.
_MOST_NODES = 2**20

#: Float attributes in which NaN is a value like any other: data, and what is written where there is none.
_MAY_BE_NAN = ("value_float", "value_floats", "extrapolation_value", "floats")

_PROTO = onnx.TensorProto

#: Bits of an element of the types that share bytes.
PACKED: dict[int, int] = {
    _PROTO.INT4: 4,
    _PROTO.UINT4: 4,
    _PROTO.FLOAT4E2M1: 4,
    _PROTO.INT2: 2,
    _PROTO.UINT2: 2,
}

#: Largest number of an axis, counted from either end.
_LARGEST_AXIS = 64

#: Longest vectors of which shape inference may follow the elements, as it does in case they are shapes: it makes a
#: symbol for each.
_LONGEST_VECTOR = 2**20

#: Largest size of a dimension: what is larger overflows where sizes are multiplied.
_LARGEST_DIM = 2**48


def check_structure(proto: onnx.ModelProto, origin: str) -> None:
    """Refuse a model whose parts contradict each other in ways that ONNX' own checker overlooks or breaks at.

    Args:
        proto: The model.
        origin: How messages name it.

    Raises:
        InvalidNetworkError: A tensor has other data than its shape and type ask for, a name is given twice, a graph is
            nested too deeply, a text is not UTF-8.
    """
    try:
        _check_texts(proto)
        _check_imports(proto)
        _check_functions(proto)
        for graph, depth in _graphs(proto):
            if depth > _DEEPEST:
                raise InvalidNetworkError(
                    f"graph {graph.name!r} is nested {depth} deep; accepted are graphs nested up to {_DEEPEST} deep."
                )
            _check_names(graph)
            _check_types(graph)
        for tensor, place in all_tensors(proto):
            _check_tensor(tensor, place)
        for node in _nodes(proto):
            _check_numbers(node)
    except InvalidNetworkError as error:
        raise InvalidNetworkError(f"{origin} is not valid ONNX: {error}") from error.__cause__


def all_tensors(proto: onnx.ModelProto) -> Iterator[tuple[onnx.TensorProto, str]]:
    """Yield every tensor of a model, each with how messages name its place."""
    for graph, _ in _graphs(proto):
        for tensor in graph.initializer:
            yield tensor, f"tensor {tensor.name!r}"
        for sparse in graph.sparse_initializer:
            yield sparse.values, f"the values of sparse tensor {sparse.values.name!r}"
            yield sparse.indices, f"the indices of sparse tensor {sparse.values.name!r}"
    for node in _nodes(proto):
        for attribute in node.attribute:
            place = f"attribute {attribute.name!r} of node {_label(node)}"
            for tensor in (attribute.t, *attribute.tensors) if attribute.HasField("t") else attribute.tensors:
                yield tensor, place
            pairs = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            for sparse in (*pairs, *attribute.sparse_tensors):
                yield sparse.values, place
                yield sparse.indices, place


def has_long_vectors(graph: onnx.GraphProto) -> bool:
    """Whether a graph declares a vector of so many elements that shape inference must not follow each."""
    shapes = [value.type.tensor_type.shape.dim for value in (*graph.input, *graph.value_info, *graph.output)]
    return any(len(dims) == 1 and dims[0].dim_value > _LONGEST_VECTOR for dims in shapes)


def _label(node: onnx.NodeProto) -> str:
    name = node.name or (node.output[0] if node.output else "")
    return f"{name!r} ({node.domain or 'ai.onnx'}::{node.op_type})"


def _graphs(proto: onnx.ModelProto) -> Iterator[tuple[onnx.GraphProto, int]]:
    """Yield every graph and how deep it is nested; without recursion, which deep ones would exhaust."""
    pending = [(proto.graph, 0), *((info.initialization, 0) for info in proto.training_info)]
    pending += [(info.algorithm, 0) for info in proto.training_info]
    pending += [(held, 1) for function in proto.functions for node in function.node for held in _held(node)]
    while pending:
        graph, depth = pending.pop()
        yield graph, depth
        if depth <= _DEEPEST:
            pending += [(held, depth + 1) for node in graph.node for held in _held(node)]


def _held(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    for graph, _ in _graphs(proto):
        yield from graph.node
    for function in proto.functions:
        yield from function.node


def _check_texts(proto: onnx.ModelProto) -> None:
    pending: list[Any] = [(proto, 0)]
    while pending:
        message, depth = pending.pop()
        if depth > 8 * _DEEPEST:
            raise InvalidNetworkError("its messages are nested too deeply.")
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                pending += [(part, depth + 1) for part in ([value] if isinstance(value, Message) else value)]
            elif field.type == FieldDescriptor.TYPE_STRING:
                for text in [value] if isinstance(value, (str, bytes)) else value:
                    # Protobuf gives a text that is not UTF-8 as bytes, which no later stage expects.
                    if isinstance(text, bytes):
                        raise InvalidNetworkError(f"the text {text!r} is not UTF-8.")


def _check_imports(proto: onnx.ModelProto) -> None:
    seen: dict[str, int] = {}
    for entry in proto.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        if seen.setdefault(domain, entry.version) != entry.version:
            raise InvalidNetworkError(
                f"it imports domain {domain or 'ai.onnx'!r} in the versions {seen[domain]} and {entry.version}."
            )
        if not 1 <= entry.version < 2**31:
            raise InvalidNetworkError(f"it imports domain {domain or 'ai.onnx'!r} in version {entry.version}.")


def _check_functions(proto: onnx.ModelProto) -> None:
    """Refuse functions that call functions so often that nobody can write them out: 40 can stand for 2**40 nodes."""
    bodies = {(f.domain, f.name, f.overload): f.node for f in proto.functions}
    counts: dict[tuple[str, str, str], int] = {}
    begun = set()
    pending = list(bodies)
    while pending:
        key = pending[-1]
        calls = [(node.domain, node.op_type, node.overload) for node in _with_held(bodies[key])]
        open_calls = list(dict.fromkeys(call for call in calls if call in bodies and call not in begun))
        if key in begun or not open_calls:
            begun.add(key)
            # A function that calls itself has no number yet; ONNX' checker refuses it.
            counts.setdefault(key, sum(counts.get(call, 1) for call in calls))
            pending.pop()
        else:
            begun.add(key)
            pending += open_calls
        if counts.get(key, 0) > _MOST_NODES:
            raise InvalidNetworkError(
                f"function {key[0]}::{key[1]} stands for {counts[key]:,} nodes; accepted are up to {_MOST_NODES:,}."
            )
    called = [(node.domain, node.op_type, node.overload) for graph, _ in _graphs(proto) for node in graph.node]
    total = sum(counts[call] for call in called if call in counts)
    if total > _MOST_NODES:
        raise InvalidNetworkError(f"its functions stand for {total:,} nodes; accepted are up to {_MOST_NODES:,}.")


def _with_held(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes, and those of the graphs that they hold."""
    pending, depth = list(nodes), 0
    while pending and depth <= _DEEPEST:
        yield from pending
        pending, depth = [inner for node in pending for graph in _held(node) for inner in graph.node], depth + 1


def _check_names(graph: onnx.GraphProto) -> None:
    for what, names in (
        ("input", [value.name for value in graph.input]),
        ("output", [value.name for value in graph.output]),
        ("stored tensor", [t.name for t in graph.initializer] + [s.values.name for s in graph.sparse_initializer]),
    ):
        seen: set[str] = set()
        for name in names:
            if not name:
                raise InvalidNetworkError(f"graph {graph.name!r} has a {what} without a name.")
            if name in seen:
                raise InvalidNetworkError(f"graph {graph.name!r} has two {what}s named {name!r}.")
            seen.add(name)
    declared = {value.name: value.type for value in graph.input}
    for tensor in graph.initializer:
        kind = declared.get(tensor.name)
        if kind is not None:
            _check_declared(tensor, kind)


def _check_declared(tensor: onnx.TensorProto, kind: onnx.TypeProto) -> None:
    """Check that a stored tensor that is listed among the inputs is what it is declared as there."""
    if kind.WhichOneof("value") != "tensor_type":
        raise InvalidNetworkError(f"input {tensor.name!r} is declared as no tensor, and a tensor is stored for it.")
    declared = kind.tensor_type
    if declared.elem_type not in (0, tensor.data_type):
        raise InvalidNetworkError(
            f"tensor {tensor.name!r} is stored as {_type_name(tensor.data_type)} and declared as "
            f"{_type_name(declared.elem_type)}."
        )
    if declared.HasField("shape"):
        sizes = [d.dim_value if d.HasField("dim_value") else None for d in declared.shape.dim]
        stored = list(tensor.dims)
        if len(sizes) != len(stored) or any(d not in (None, s) for d, s in zip(sizes, stored)):
            raise InvalidNetworkError(f"tensor {tensor.name!r} is stored with shape {stored} and declared as {sizes}.")


def _type_name(element: int) -> str:
    return str(_PROTO.DataType.Name(element)) if element in _PROTO.DataType.values() else f"element type {element}"


def _check_types(graph: onnx.GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind, depth = value.type, 0
        while kind.WhichOneof("value") in ("sequence_type", "optional_type", "map_type"):
            held = getattr(kind, str(kind.WhichOneof("value")))
            kind = held.value_type if kind.HasField("map_type") else held.elem_type
            depth += 1
            if depth > _DEEPEST:
                raise InvalidNetworkError(f"the type of {value.name!r} is nested too deeply.")
        which = kind.WhichOneof("value")
        if which not in ("tensor_type", "sparse_tensor_type"):
            continue
        for dim in getattr(kind, which).shape.dim:
            if not 0 <= dim.dim_value <= _LARGEST_DIM:
                raise InvalidNetworkError(f"{value.name!r} is declared with a dimension of size {dim.dim_value}.")


def expected_size(tensor: onnx.TensorProto, place: str) -> int:
    """Return how many bytes of raw data the shape and type of a tensor ask for.

    Args:
        tensor: The tensor, of a type of fixed size.
        place: How messages name it.

    Raises:
        InvalidNetworkError: A size is negative or its type does not exist.
    """
    count = _count(tensor, place)
    if tensor.data_type in PACKED:
        return -(-count * PACKED[tensor.data_type] // 8)
    try:
        return count * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidNetworkError(f"{place} has {_type_name(tensor.data_type)}, which is none of ONNX'.") from error


def _count(tensor: onnx.TensorProto, place: str) -> int:
    if any(size < 0 or size > _LARGEST_DIM for size in tensor.dims):
        raise InvalidNetworkError(f"{place} has the shape {list(tensor.dims)}.")
    return math.prod(tensor.dims)


def _check_tensor(tensor: onnx.TensorProto, place: str) -> None:
    """Check that a tensor has as much data as its shape says, so that nobody reads beyond it or allocates for it."""
    count = _count(tensor, place)
    if tensor.data_type == _PROTO.STRING:
        stored: int = len(tensor.string_data)
        if tensor.HasField("raw_data") or stored != count:
            raise InvalidNetworkError(
                f"{place} holds {stored} texts, and its shape {list(tensor.dims)} asks for {count}."
            )
        for text in tensor.string_data:
            try:
                text.decode()
            except UnicodeDecodeError as error:
                raise InvalidNetworkError(f"{place} holds a text that is not UTF-8.") from error
        return
    size = expected_size(tensor, place)
    if tensor.data_location == _PROTO.EXTERNAL:
        return
    if tensor.HasField("raw_data"):
        if len(tensor.raw_data) != size:
            raise InvalidNetworkError(
                f"{place} holds {len(tensor.raw_data)} bytes, and {_type_name(tensor.data_type)} of shape "
                f"{list(tensor.dims)} asks for {size}."
            )
        return
    field = onnx.helper.tensor_dtype_to_field(tensor.data_type)
    wanted = size if tensor.data_type in PACKED else count
    if tensor.data_type in (_PROTO.COMPLEX64, _PROTO.COMPLEX128):
        wanted *= 2
    values = getattr(tensor, field)
    if len(values) != wanted:
        raise InvalidNetworkError(
            f"{place} holds {len(values)} numbers, and {_type_name(tensor.data_type)} of shape {list(tensor.dims)} "
            f"asks for {wanted}."
        )
    others = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
    if any(len(getattr(tensor, other)) for other in others if other != field):
        raise InvalidNetworkError(f"{place} holds numbers of several types.")


def _check_numbers(node: onnx.NodeProto) -> None:
    """Refuse settings that are no number, such as an epsilon or a momentum of NaN."""
    if node.domain not in ("", "ai.onnx"):
        return
    for attribute in node.attribute:
        if attribute.name in _MAY_BE_NAN:
            continue
        if attribute.name in ("axis", "axes") and any(abs(i) > _LARGEST_AXIS for i in (attribute.i, *attribute.ints)):
            # Shape inference reads beyond the shape at some of them, which ends the process.
            raise InvalidNetworkError(f"attribute {attribute.name!r} of node {_label(node)} is no axis.")
        values = [attribute.f, *attribute.floats]
        if any(math.isnan(value) for value in values):
            raise InvalidNetworkError(f"attribute {attribute.name!r} of node {_label(node)} is not a number (NaN).")
