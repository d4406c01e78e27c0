"""Training in 16 bits: matrix products in 16 bits, everything that sums up or is updated in 32."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.measure.tolerance import tolerance
from deep500.networks.network import Network
from deep500.networks.operator_node import held_graphs
from deep500.networks.transformation import Transformation
from deep500.networks.transforms._graphs import unused_name
from deep500.networks.transforms._schemas import allows_dtype, node_schema, type_letter

__all__ = ["MixedPrecision"]

_DTYPES = ("bfloat16", "float16")

#: Operators that multiply matrices or kernels; they add up in float32 where the hardware multiplies 16 bits.
_PRODUCTS = frozenset(("Attention", "Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"))

#: Operators that move or choose elements and round nothing: what is 16 bits before may stay so.
_MOVES = frozenset(
    (
        *("Concat", "Flatten", "Identity", "MaxPool", "Relu", "Reshape", "Slice", "Split", "Squeeze", "Transpose"),
        "Unsqueeze",
    )
)

#: Roundings to 16 bits by one product: of two operands and of the result, in itself and in both of its gradient.
_ROUNDINGS = 9


class MixedPrecision(Transformation):
    """Multiply matrices in bfloat16 or float16; parameters, and all other operators, stay in float32.

    Cast nodes round the operands of products and convolutions and widen their results. Each parameter is stored, and
    differentiated, in float32 (the master copy that an optimizer updates); normalisations, softmax, losses, reductions
    and all that is computed element by element read float32. Attention computes its softmax in float32. Between two
    products, operators that only move or choose elements (Relu, Reshape, MaxPool without overlap) take the 16 bits on.

    Precondition: a product in float32, and no tensor of the 16-bit dtype. Postconditions: inputs, outputs, losses and
    parameters are what they were, every product reads 16 bits, and nothing but products and moves does.

    Source: P. Micikevicius et al., "Mixed precision training", ICLR 2018, section 3; D. Kalamkar et al., "A study of
    BFLOAT16 for deep learning training", 2019.
    """

    def __init__(self, dtype: str = "bfloat16", *, keep: Iterable[str] = ()) -> None:
        """Choose the dtype.

        Args:
            dtype: ``"bfloat16"`` or ``"float16"``. Gradients in float16 need a scaled loss
                (:mod:`deep500.training.loss_scaling`).
            keep: Operators, or names of nodes, that stay in float32.

        Raises:
            InvalidInputError: The dtype is none of these, or ``keep`` is a text.
        """
        if dtype not in _DTYPES:
            raise InvalidInputError(f"dtype was given as {dtype!r}; accepted are {', '.join(_DTYPES)}.")
        if isinstance(keep, str):
            raise InvalidInputError(f"keep was given as {keep!r}; accepted is a list of operators, such as [{keep!r}].")
        self.dtype, self.keep = dtype, frozenset(keep)
        self._depth = 1

    @property
    def relative_error(self) -> float:
        """What the roundings on the longest way through the network's products come to."""
        return tolerance(self.dtype, max(_ROUNDINGS * self._depth, 16), accumulator=self.dtype).relative

    def check(self, network: Network) -> None:
        """Refuse networks without a product in float32, and those that compute in 16 bits already."""
        graph = network.model.graph
        if not any(self.is_product(node) for node in graph):
            raise InvalidInputError(
                f"Network {network.name!r} multiplies no matrices in float32 ({', '.join(sorted(_PRODUCTS))}), so that "
                f"there is nothing to compute in {self.dtype}."
            )
        narrow = _type(self.dtype)
        values = [*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs)]
        for value in values:
            if value.dtype == narrow:
                raise InvalidNetworkError(
                    f"Network {network.name!r} has {value.name!r} in {self.dtype} already; accepted are networks that "
                    f"compute in float32."
                )

    def apply(self, network: Network) -> Network:
        """Return the network that multiplies in 16 bits."""
        result = network.detached()
        self._depth = _longest_way(result.model.graph, self)
        _Rewriting(self, result.model.graph).rewrite()
        return result

    def check_result(self, network: Network, result: Network) -> None:
        """Also check that parameters are what they were, and that products alone are computed in 16 bits."""
        super().check_result(network, result)
        if network.parameters != result.parameters or network.states != result.states:
            raise InvalidNetworkError(f"{self.name} changed the parameters of network {network.name!r}.")
        narrow = _type(self.dtype)
        for node in result.model.graph:
            reads = any(value is not None and value.dtype == narrow for value in node.inputs)
            if self.is_product(node):
                raise InvalidNetworkError(f"{self.name} left node {node.name!r} ({node.op_type}) in float32.")
            if reads and node.op_type not in (*_PRODUCTS, *_MOVES, "Cast"):
                raise InvalidNetworkError(f"{self.name} let node {node.name!r} ({node.op_type}) read {self.dtype}.")

    def is_product(self, node: ir.Node) -> bool:
        """Whether a node is a product in float32 that is to be computed in 16 bits."""
        return self._is_taken(node) and node.op_type in _PRODUCTS and bool(self.operands(node))

    def is_move(self, node: ir.Node) -> bool:
        """Whether a node only moves or chooses elements, each to one place at most."""
        if not self._is_taken(node) or node.op_type not in _MOVES:
            return False
        return node.op_type != "MaxPool" or not _overlaps(node)

    def operands(self, node: ir.Node) -> list[int]:
        """Return the numbers of a node's inputs in float32 whose type is that of an output, given or not."""
        letters = {output.type_str for output in node_schema(node).outputs}
        return [
            index
            for index, value in enumerate(node.inputs)
            if value is not None
            and value.dtype == ir.DataType.FLOAT
            and type_letter(node, "inputs", index) in letters
            and allows_dtype(node, "inputs", index, _type(self.dtype))
        ]

    def _is_taken(self, node: ir.Node) -> bool:
        is_kept = node.op_type in self.keep or (node.name or "") in self.keep
        return not node.domain and not is_kept and not any(held_graphs(node))


class _Rewriting:
    """One graph being changed in place."""

    def __init__(self, transformation: MixedPrecision, graph: ir.Graph) -> None:
        self.transformation, self.graph = transformation, graph
        self.narrow = _type(transformation.dtype)
        #: The 16-bit tensor that a float32 tensor was widened from.
        self.computed: dict[ir.Value, ir.Value] = {}
        #: The 16-bit tensor that a float32 tensor was rounded to.
        self.rounded: dict[ir.Value, ir.Value] = {}

    def rewrite(self) -> None:
        for node in list(self.graph):
            transformation = self.transformation
            if transformation.is_product(node):
                if node.op_type == "Attention":
                    node.attributes["softmax_precision"] = ir.AttrInt64("softmax_precision", ir.DataType.FLOAT.value)
            elif not transformation.is_move(node) or not self._is_computed(node):
                continue
            for index in transformation.operands(node):
                value = node.inputs[index]
                assert value is not None
                node.replace_input_with(index, self._narrowed(value, node))
            for output in list(node.outputs):
                if output.dtype == ir.DataType.FLOAT:
                    self._widen(node, output)
        for widened in reversed(list(self.computed)):
            cast = widened.producer()
            if cast is not None and not widened.uses() and not widened.is_graph_output():
                self.graph.remove(cast, safe=True)

    def _is_computed(self, node: ir.Node) -> bool:
        """Whether all of a node's operands were computed in 16 bits, so that nothing more is rounded."""
        operands = [node.inputs[index] for index in self.transformation.operands(node)]
        return bool(operands) and all(value in self.computed for value in operands)

    def _narrowed(self, value: ir.Value, node: ir.Node) -> ir.Value:
        """Return a value in 16 bits: as it was computed, or the result of a Cast before the node."""
        if value in self.computed:
            return self.computed[value]
        if value not in self.rounded:
            cast = _cast(value, self.narrow, unused_name(f"{value.name}.{self.transformation.dtype}", self.graph))
            self.graph.insert_before(node, cast)
            self.rounded[value] = cast.outputs[0]
        return self.rounded[value]

    def _widen(self, node: ir.Node, output: ir.Value) -> None:
        """Make an output 16 bits; a Cast behind it takes its name, its meaning and its readers."""
        name, uses = output.name or "", list(output.uses())
        output.name = unused_name(f"{name}.{self.transformation.dtype}", self.graph)
        output.type = ir.TensorType(self.narrow)
        cast = _cast(output, ir.DataType.FLOAT, name)
        widened = cast.outputs[0]
        widened.metadata_props.update(output.metadata_props)
        output.metadata_props.clear()
        self.graph.insert_after(node, cast)
        for reader, index in uses:
            reader.replace_input_with(index, widened)
        for index, value in enumerate(self.graph.outputs):
            if value is output:
                self.graph.outputs[index] = widened
        self.computed[widened] = output


def _cast(value: ir.Value, dtype: ir.DataType, name: str) -> ir.Node:
    node = ir.Node("", "Cast", [value], [ir.AttrInt64("to", dtype.value)], name=f"{name}.cast")
    result = node.outputs[0]
    result.name, result.type, result.shape = name, ir.TensorType(dtype), value.shape
    return node


def _overlaps(node: ir.Node) -> bool:
    """Whether an element may be chosen by several windows, whose gradients are added up then."""
    kernel = node.attributes["kernel_shape"].as_ints()
    strides = node.attributes["strides"].as_ints() if "strides" in node.attributes else [1] * len(kernel)
    dilated = "dilations" in node.attributes and any(size != 1 for size in node.attributes["dilations"].as_ints())
    return dilated or any(step < size for step, size in zip(strides, kernel))


def _longest_way(graph: ir.Graph, transformation: MixedPrecision) -> int:
    """Return the largest number of products on a way through a graph."""
    lengths: dict[ir.Value, int] = {}
    for node in graph:
        before = max((lengths.get(value, 0) for value in node.inputs if value is not None), default=0)
        lengths.update(dict.fromkeys(node.outputs, before + transformation.is_product(node)))
    return max(lengths.values(), default=0) or 1


def _type(name: str) -> ir.DataType:
    return ir.DataType.from_numpy(numpy_dtype(name))
