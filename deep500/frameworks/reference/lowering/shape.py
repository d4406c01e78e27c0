"""Shapes: elements moved, repeated or cut out."""

from deep500.frameworks.reference.lowering import lowerings
from deep500.frameworks.reference.lowering._library import LIBRARY, take
from deep500.frameworks.reference.lowering._onnx_reference import take_onnx
from deep500.frameworks.reference.lowering.sequence import pass_on
from deep500.networks.operator_node import OperatorNode
from deep500.operators.operator import Operator

__all__: list[str] = []

take("Flatten", "flatten", since=9)
take("Reshape", "reshape", since=5)
take("Transpose", "transpose", since=1)
take("Concat", "concat", since=4)
take("Squeeze", "squeeze", since=13)
take("Unsqueeze", "unsqueeze", since=13)
take("Expand", "expand", since=8)
take("Tile", "tile", since=6)
take("Pad", "pad", since=18)
take("Slice", "slice", since=10)
take("Split", "split", since=18)
take("Trilu", "trilu", since=14)
take("DepthToSpace", "depth_to_space", since=11)
take("SpaceToDepth", "space_to_depth", since=1)
take("ReverseSequence", "reverse_sequence", since=10)

take_onnx("Shape", since=1)
take_onnx("Size", since=1)


@lowerings.register("Identity", since=1)
def identity(node: OperatorNode) -> Operator:
    """Return the library's operator for tensors; sequences and optionals are passed on as they are."""
    if node.input_types and node.input_types[0] is not None:
        operator = LIBRARY.get("identity")()
        assert isinstance(operator, Operator)
        return operator
    return pass_on(node)
