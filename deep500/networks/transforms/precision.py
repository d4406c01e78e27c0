"""Changing the precision in which a network computes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.measure.tolerance import tolerance
from deep500.networks.network import Network
from deep500.networks.operator_node import held_graphs, read_node
from deep500.networks.transformation import Transformation
from deep500.networks.transforms._graphs import unused_name
from deep500.networks.transforms._schemas import allows_dtype, type_letter

__all__ = ["Precision"]

_FLOATS = ("float16", "bfloat16", "float32", "float64")

#: Operators whose sums or logarithms lose too much in 16 bits; they compute in the network's own precision.
_SENSITIVE = frozenset(("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", "ReduceSumSquare", "ReduceLogSumExp"))

#: Attributes that name an element type.
_TYPE_ATTRIBUTES = ("to", "dtype")


class Precision(Transformation):
    """Compute in another floating dtype.

    Parameters, states and constants are rounded to it. Inputs and outputs stay as they are: Cast nodes stand at the
    borders, and around what stays in the old dtype: operators that ONNX does not define in the new one, custom
    operators, and for 16-bit dtypes losses and sums of squares.
    """

    def __init__(self, dtype: str = "float16", *, source: str = "float32", keep: Iterable[str] = ()) -> None:
        """Choose the dtypes.

        Args:
            dtype: The new one: ``"float16"``, ``"bfloat16"``, ``"float32"`` or ``"float64"``.
            source: The one that it replaces.
            keep: Further operators, or names of nodes, that stay in ``source``.

        Raises:
            InvalidInputError: A dtype is none of these, or both are the same.
        """
        for what, name in (("dtype", dtype), ("source", source)):
            if name not in _FLOATS:
                raise InvalidInputError(f"{what} was given as {name!r}; accepted are {', '.join(_FLOATS)}.")
        if dtype == source:
            raise InvalidInputError(f"The network would be turned from {source} into {dtype}; accepted are two dtypes.")
        if isinstance(keep, str):
            raise InvalidInputError(f"keep was given as {keep!r}; accepted is a list of operators, such as [{keep!r}].")
        self.dtype, self.source = dtype, source
        narrow = numpy_dtype(dtype).itemsize == 2
        self.keep = frozenset(keep) | (_SENSITIVE if narrow else frozenset())
        self._depth = 1

    @property
    def relative_error(self) -> float:
        """What as many roundings as the network has nodes come to in the narrower of both dtypes."""
        narrower = self.dtype if numpy_dtype(self.dtype).itemsize <= numpy_dtype(self.source).itemsize else self.source
        return tolerance(narrower, max(self._depth, 16), accumulator=narrower).relative

    def check(self, network: Network) -> None:
        """Refuse networks that have nothing of the old dtype, and nodes that hold graphs."""
        graph = network.model.graph
        source = self._type(self.source)
        values = [*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs)]
        if all(value.dtype != source for value in values):
            raise InvalidInputError(f"Network {network.name!r} has no tensor of {self.source}.")
        for node in graph:
            label = read_node(node, graph.opset_imports).label
            if any(held_graphs(node)):
                raise InvalidNetworkError(f"{label} holds graphs, whose precision is not changed.")
            for value in node.outputs:
                if value.type is None:
                    raise InvalidNetworkError(f"{label} gives {value.name!r}, whose element type is not known.")

    def apply(self, network: Network) -> Network:
        """Return the network that computes in the new dtype."""
        result = network.detached()
        graph = result.model.graph
        self._depth = len(graph)
        _Rewriting(self, graph).rewrite()
        return result

    def check_result(self, network: Network, result: Network) -> None:
        """Also check that parameters kept their names and shapes, and that none is left in the old dtype needlessly."""
        super().check_result(network, result)
        before = {name: d.shape for name, d in network.parameters.items()}
        if before != {name: d.shape for name, d in result.parameters.items()}:
            raise InvalidNetworkError(f"{self.name} changed the parameters of network {network.name!r}.")

    def is_kept(self, node: ir.Node) -> bool:
        """Whether a node stays in the old dtype."""
        return bool(node.domain) or node.op_type in self.keep or (node.name or "") in self.keep

    @staticmethod
    def _type(name: str) -> ir.DataType:
        return ir.DataType.from_numpy(numpy_dtype(name))


class _Rewriting:
    """One graph being changed in place."""

    def __init__(self, precision: Precision, graph: ir.Graph) -> None:
        self.precision, self.graph = precision, graph
        self.source = ir.DataType.from_numpy(numpy_dtype(precision.source))
        self.target = ir.DataType.from_numpy(numpy_dtype(precision.dtype))
        #: Tensors that were cast, so that each is cast once.
        self.casts: dict[tuple[ir.Value, ir.DataType], ir.Value] = {}

    def rewrite(self) -> None:
        wanted = self._wanted()
        self._round_stored(wanted)
        for node in list(self.graph):
            for index, value in enumerate(node.inputs):
                if value is not None and (node, index) in wanted:
                    node.replace_input_with(index, self._cast(value, wanted[node, index], node))
            self._retype(node)
        for index, output in enumerate(list(self.graph.outputs)):
            if output.dtype == self.target and output in self._originals:
                self._restore_output(index, output)

    def _wanted(self) -> dict[tuple[ir.Node, int], ir.DataType]:
        """Return the dtype in which every input of the old dtype is to be read."""
        wanted = {}
        self._originals = {v for v in self.graph.outputs if v.dtype == self.source}
        for node in self.graph:
            for index, value in enumerate(node.inputs):
                if value is not None and value.dtype == self.source:
                    allowed = not self.precision.is_kept(node) and allows_dtype(node, "inputs", index, self.target)
                    wanted[node, index] = self.target if allowed else self.source
        return wanted

    def _round_stored(self, wanted: dict[tuple[ir.Node, int], ir.DataType]) -> None:
        new = self.target.numpy()
        for name, value in self.graph.initializers.items():
            uses = [(node, index) for node, index in value.uses()]
            if value.dtype != self.source or value.const_value is None or value.is_graph_output():
                continue
            if uses and all(wanted.get(use) == self.source for use in uses):
                continue  # only what is kept reads it
            with np.errstate(over="ignore"):
                value.const_value = ir.tensor(np.asarray(value.const_value.numpy()).astype(new), name=name)
            value.type = ir.TensorType(self.target)

    def _cast(self, value: ir.Value, wanted: ir.DataType, node: ir.Node) -> ir.Value:
        """Return a value in the wanted dtype: itself, or the result of a Cast before the node."""
        if value.dtype == wanted:
            return value
        if (value, wanted) not in self.casts:
            cast = ir.Node("", "Cast", [value], [ir.AttrInt64("to", wanted.value)])
            result = cast.outputs[0]
            result.name = unused_name(f"{value.name}.{wanted.numpy().name}", self.graph)
            cast.name = result.name
            result.type, result.shape = ir.TensorType(wanted), value.shape
            self.graph.insert_before(node, cast)
            self.casts[value, wanted] = result
        return self.casts[value, wanted]

    def _retype(self, node: ir.Node) -> None:
        """Set what follows for the node's outputs, and the element types that it names."""
        if self.precision.is_kept(node):
            return
        changes = [v for i, v in enumerate(node.outputs) if self._follows(node, i, v)]
        for value in changes:
            value.type = ir.TensorType(self.target)
        for key in _TYPE_ATTRIBUTES:
            if changes and key in node.attributes and node.attributes[key].as_int() == self.source.value:
                node.attributes[key] = ir.AttrInt64(key, self.target.value)
        if changes and node.op_type == "ConstantOfShape":
            filled = node.attributes["value"].as_tensor().numpy() if "value" in node.attributes else np.zeros(1, "f4")
            node.attributes["value"] = ir.AttrTensor("value", ir.tensor(filled.astype(self.target.numpy())))

    def _follows(self, node: ir.Node, index: int, value: ir.Value) -> bool:
        """Whether an output is of the new dtype: it is of the type of an input that is, or of one that is named."""
        if value.dtype != self.source or not allows_dtype(node, "outputs", index, self.target):
            return False
        letter = type_letter(node, "outputs", index)
        readers = [
            node.inputs[i]
            for i in range(len(node.inputs))
            if node.inputs[i] is not None and type_letter(node, "inputs", i) == letter
        ]
        return all(v.dtype == self.target for v in readers if v is not None)

    def _restore_output(self, index: int, output: ir.Value) -> None:
        """Cast an output back; it keeps its name, and what reads it reads the narrow tensor."""
        name = output.name or ""
        output.name = unused_name(f"{name}.{self.precision.dtype}", self.graph)
        cast = ir.Node("", "Cast", [output], [ir.AttrInt64("to", self.source.value)], name=f"{name}.cast")
        restored = cast.outputs[0]
        restored.name = name
        restored.type, restored.shape = ir.TensorType(self.source), output.shape
        restored.metadata_props.update(output.metadata_props)
        output.metadata_props.clear()
        self.graph.append(cast)
        self.graph.outputs[index] = restored
