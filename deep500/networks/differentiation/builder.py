"""Writing ONNX nodes as formulas: values that know their type, and the builder that appends what is asked of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import onnx
import onnx.defs
import onnx.helper
import onnx.numpy_helper
import onnx.shape_inference
from numpy.typing import NDArray

from deep500.core.errors import UnsupportedOperatorError

__all__ = ["GraphBuilder", "Operand", "Value"]

#: What stands in a formula: a value, or a number, which takes the element type of the values beside it.
Operand = Union["Value", float, int]

_INT64, _BOOL = onnx.TensorProto.INT64, onnx.TensorProto.BOOL


class Value:
    """A tensor of a graph that is being written; arithmetic appends nodes.

    Attributes:
        name: The tensor's name.
        builder: What appends the nodes.
    """

    def __init__(self, name: str, builder: GraphBuilder) -> None:
        """Name a tensor; :meth:`GraphBuilder.value` does it."""
        self.name = name
        self.builder = builder

    @property
    def type(self) -> onnx.TypeProto | None:
        """What is known of it."""
        return self.builder.types.get(self.name)

    @property
    def element_type(self) -> int:
        """Number of its element type, 0 where that is not known or it is no tensor."""
        kind = self.type
        return kind.tensor_type.elem_type if kind is not None and kind.HasField("tensor_type") else 0

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """Its sizes, as far as they are known; ``None`` where not even the rank is."""
        kind = self.type
        if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
            return None
        return tuple(
            d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or None
            for d in kind.tensor_type.shape.dim
        )

    @property
    def constant(self) -> NDArray[Any] | None:
        """Its value, where that is known."""
        return self.builder.constants.get(self.name)

    @property
    def rank(self) -> int:
        """Its rank.

        Raises:
            UnsupportedOperatorError: It is not known.
        """
        shape = self.shape
        if shape is None:
            raise UnsupportedOperatorError(
                f"the rank of {self.name!r} is not known, and its derivative needs it; declare the shapes of the "
                f"network's inputs (sizes may be symbolic)"
            )
        return len(shape)

    def __add__(self, other: Operand) -> Value:
        """Return the sum."""
        return self.builder.op("Add", self, other)

    def __radd__(self, other: Operand) -> Value:
        """Return the sum."""
        return self.builder.op("Add", other, self)

    def __sub__(self, other: Operand) -> Value:
        """Return the difference."""
        return self.builder.op("Sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        """Return the difference."""
        return self.builder.op("Sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        """Return the product."""
        return self.builder.op("Mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        """Return the product."""
        return self.builder.op("Mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        """Return the quotient."""
        return self.builder.op("Div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        """Return the quotient."""
        return self.builder.op("Div", other, self)

    def __neg__(self) -> Value:
        """Return the negative."""
        return self.builder.op("Neg", self)

    def __gt__(self, other: Operand) -> Value:
        """Return where it is greater."""
        return self.builder.op("Greater", self, other)

    def __ge__(self, other: Operand) -> Value:
        """Return where it is greater or equal."""
        return self.builder.op("GreaterOrEqual", self, other)

    def __lt__(self, other: Operand) -> Value:
        """Return where it is less."""
        return self.builder.op("Less", self, other)

    def __le__(self, other: Operand) -> Value:
        """Return where it is less or equal."""
        return self.builder.op("LessOrEqual", self, other)

    def equals(self, other: Operand) -> Value:
        """Return where it is equal."""
        return self.builder.op("Equal", self, other)

    def square(self) -> Value:
        """Return its square."""
        return self * self


class GraphBuilder:
    """Appends nodes, and infers the types of what they compute.

    Attributes:
        nodes: The nodes so far.
        initializers: The constants that they read; they belong to the outermost graph.
        types: Types by name, as far as they are known.
        constants: Values by name, as far as they are known.
        imports: The opset versions by domain.
    """

    def __init__(
        self,
        taken: set[str],
        types: dict[str, onnx.TypeProto],
        constants: dict[str, NDArray[Any]],
        imports: Mapping[str, int],
    ) -> None:
        """Begin with no nodes.

        Args:
            taken: Names that are in use.
            types: Types of the values there are.
            constants: Values of the constants there are.
            imports: The opset versions by domain.
        """
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.types = types
        self.constants = constants
        self.imports = dict(imports)
        self._taken = taken
        self._counter = itertools.count()
        self._known: dict[tuple[Any, ...], str] = {}
        self._opsets = [onnx.helper.make_opsetid(*entry) for entry in self.imports.items()]

    def child(self) -> GraphBuilder:
        """Return a builder of the nodes of a graph that a node of this one holds; it may read everything of this."""
        made = GraphBuilder(self._taken, self.types, self.constants, self.imports)
        made.initializers, made._known, made._counter = self.initializers, self._known, self._counter
        return made

    def fresh(self, base: str) -> str:
        """Return a name that nothing has."""
        while (name := f"{base}_{next(self._counter)}") in self._taken:
            pass
        self._taken.add(name)
        return name

    def value(self, name: str) -> Value:
        """Return the tensor of a name."""
        return Value(name, self)

    def input(self, base: str, like: Value | None = None, element_type: int = 0, shape: Any = None) -> Value:
        """Return a tensor that a graph is given: of the type of another, or of an element type and shape."""
        made = self.value(self.fresh(base))
        if like is not None:
            self.same_type(made, like)
        elif element_type:
            self.types[made.name] = onnx.helper.make_tensor_type_proto(element_type, shape)
        return made

    def op(self, op_type: str, *inputs: Operand | None, domain: str = "", **attributes: Any) -> Value:
        """Append a node with one output.

        Args:
            op_type: The operator.
            *inputs: Its inputs; numbers take the element type of the first value among them.
            domain: The operator's domain.
            **attributes: Its attributes; those that are ``None`` are left out.
        """
        return self.ops(op_type, *inputs, count=1, domain=domain, **attributes)[0]

    def ops(
        self, op_type: str, *inputs: Operand | None, count: int, domain: str = "", **attributes: Any
    ) -> tuple[Value, ...]:
        """Append a node with several outputs; see :meth:`op`."""
        like = next((x for x in inputs if isinstance(x, Value)), None)
        names = ["" if x is None else (x if isinstance(x, Value) else self.number(x, like)).name for x in inputs]
        while names and not names[-1]:
            names.pop()
        outputs = [self.fresh(f"{op_type}.gradient") for _ in range(count)]
        given = {key: value for key, value in attributes.items() if value is not None}
        node = onnx.helper.make_node(op_type, names, outputs, name=outputs[0], domain=domain, **given)
        self.append(node)
        return tuple(self.value(name) for name in outputs)

    def append(self, node: onnx.NodeProto) -> None:
        """Append a node that is ready, and infer the types of its outputs."""
        self.nodes.append(node)
        self._taken.update(node.output)
        self._infer(node)

    def number(self, value: float, like: Value | None) -> Value:
        """Return a number as a tensor without axes, of the element type of another one."""
        kind = like.element_type if like is not None else _INT64
        if kind:
            return self.constant(np.asarray(value, onnx.helper.tensor_dtype_to_np_dtype(kind)))
        return self.op("CastLike", self.constant(np.float64(value)), like)

    def constant(self, array: Any) -> Value:
        """Return a constant; equal ones are stored once."""
        array = np.asarray(array)
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._known:
            name = self.fresh("constant.gradient")
            self._known[key] = name
            self.initializers.append(onnx.numpy_helper.from_array(array, name))
            self.constants[name] = array
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            self.types[name] = onnx.helper.make_tensor_type_proto(kind, array.shape)
        return self.value(self._known[key])

    def ints(self, *values: int) -> Value:
        """Return a vector of integers."""
        return self.constant(np.array(values, np.int64))

    def same_type(self, value: Value, like: Value) -> Value:
        """Say that a value has the type of another one; return it."""
        if like.type is not None:
            self.types[value.name] = like.type
        return value

    def shape(self, value: Value) -> Value:
        """Return the shape of a tensor as a vector, constant where it is known."""
        sizes = value.shape
        if sizes is not None and all(isinstance(size, int) for size in sizes):
            return self.constant(np.array(sizes, np.int64))
        return self.op("Shape", value)

    def size(self, value: Value, axis: int) -> Value:
        """Return the size of a tensor along an axis, as a vector of one element."""
        sizes = value.shape
        if sizes is not None and isinstance(sizes[axis], int):
            return self.ints(int(sizes[axis] or 0))
        end = None if axis == -1 else axis + 1
        return self.op("Shape", value, start=axis, end=end)

    def sizes(self, *parts: Value | int) -> Value:
        """Return a shape from vectors and numbers."""
        vectors = [self.ints(part) if isinstance(part, int) else part for part in parts]
        known = [vector.constant for vector in vectors]
        if all(vector is not None for vector in known):
            return self.constant(np.concatenate([vector for vector in known if vector is not None]))
        return self.op("Concat", *vectors, axis=0)

    def reshape(self, value: Value, shape: Value) -> Value:
        """Return a tensor in another shape; sizes of 0 mean 0."""
        return self.op("Reshape", value, shape, allowzero=1)

    def reshape_like(self, value: Value, like: Value) -> Value:
        """Return a tensor in the shape of another one, which has as many elements."""
        if value.shape is not None and value.shape == like.shape and None not in value.shape:
            return value
        return self._of_shape(self.reshape(value, self.shape(like)), value, like)

    def flat(self, value: Value) -> Value:
        """Return all elements as a vector."""
        return self.op("Reshape", value, self.ints(-1))

    def expand_like(self, value: Value, like: Value) -> Value:
        """Return a tensor repeated to the shape of another one."""
        return self._of_shape(self.op("Expand", value, self.shape(like)), value, like)

    def zeros(self, shape: Value, like: Value) -> Value:
        """Return zeros of a shape and the element type of another tensor."""
        return self.op("Expand", self.number(0, like), shape)

    def zeros_like(self, value: Value) -> Value:
        """Return zeros of the type of a tensor."""
        return self._of_shape(self.zeros(self.shape(value), value), value, value)

    def ones_like(self, value: Value) -> Value:
        """Return ones of the type of a tensor."""
        return self._of_shape(self.op("Expand", self.number(1, value), self.shape(value)), value, value)

    def cast_like(self, value: Value, like: Value) -> Value:
        """Return a tensor with the elements converted to those of another one."""
        if value.element_type and value.element_type == like.element_type:
            return value
        return self.op("CastLike", value, like)

    def where(self, condition: Value, then: Operand, other: Operand) -> Value:
        """Return one or the other, element by element."""
        like = then if isinstance(then, Value) else other if isinstance(other, Value) else None
        parts = [x if isinstance(x, Value) else self.number(x, like) for x in (then, other)]
        return self.op("Where", condition, *parts)

    def total(self, value: Value, axes: Value | Sequence[int] | None = None, *, keepdims: int = 1) -> Value:
        """Return sums over axes, over all without."""
        given = axes if axes is None or isinstance(axes, Value) else self.ints(*axes)
        empty = given is not None and given.constant is not None and given.constant.size == 0
        if empty:
            return value
        noop = None if given is None else 1
        return self.op("ReduceSum", value, given, keepdims=keepdims, noop_with_empty_axes=noop)

    def transpose(self, value: Value, *axes: int) -> Value:
        """Return a tensor with its axes in another order."""
        return value if axes == tuple(range(len(axes))) else self.op("Transpose", value, perm=list(axes))

    def sum_to(self, value: Value, like: Value) -> Value:
        """Return sums over what a tensor was repeated along, in its own shape: what is backward of broadcasting."""
        long, short = value.shape, like.shape
        if long is not None and short is not None:
            if long == short and None not in long:
                return value
            if len(long) >= len(short) and self._is_settled(long[len(long) - len(short) :], short):
                lead = len(long) - len(short)
                pairs = zip(long[lead:], short, strict=True)
                axes = [*range(lead), *(lead + i for i, (a, b) in enumerate(pairs) if b == 1 and a != 1)]
                return self.reshape_like(self.total(value, axes), like)
        ones = self.op("Expand", self.ints(1), self.op("Shape", self.op("Shape", value)) - self.op(
            "Shape", self.op("Shape", like)))  # fmt: skip
        padded = self.op("Concat", ones, self.op("Shape", like), axis=0)
        places = self.op("Squeeze", self.op("NonZero", padded.equals(1)), self.ints(0))
        return self.reshape_like(self.total(value, places), like)

    @staticmethod
    def _is_settled(long: Sequence[int | str | None], short: Sequence[int | str | None]) -> bool:
        """Whether sizes tell along which axes there was broadcasting; two different symbols do not."""
        return all(b == 1 or (a == b and a is not None) or (isinstance(b, int) and b != 1) for a, b in zip(long, short))

    def _of_shape(self, made: Value, value: Value, like: Value) -> Value:
        kind, sizes = value.element_type or made.element_type, like.shape
        if kind and sizes is not None:
            self.types[made.name] = onnx.helper.make_tensor_type_proto(kind, sizes)
        return made

    def _infer(self, node: onnx.NodeProto) -> None:
        """Infer what is known of the outputs of one node; what cannot be inferred stays unknown."""
        kinds = {name: self.types[name] for name in node.input if name in self.types}
        if any(name and name not in kinds for name in node.input) or any(a.type == a.GRAPH for a in node.attribute):
            return
        try:
            schema = onnx.defs.get_schema(node.op_type, self.imports.get(node.domain, 1), node.domain)
            data = {
                name: onnx.numpy_helper.from_array(self.constants[name], name)
                for name in node.input
                if name in self.constants and self.constants[name].size <= 64 and self.constants[name].dtype.kind != "O"
            }
            found = onnx.shape_inference.infer_node_outputs(schema, node, kinds, data, opset_imports=self._opsets)
        except Exception:  # noqa: BLE001 - inference reports what it does not understand by unrelated types
            return
        self.types.update(found)
