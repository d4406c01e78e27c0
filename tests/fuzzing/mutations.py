"""Seeded damage to a model file: of its bytes, or of the model that they hold."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import onnx

__all__ = ["mutated"]


def mutated(content: bytes, seed: int) -> tuple[bytes, str]:
    """Return a damaged file, and what was done to it."""
    generator = random.Random(seed)
    if generator.random() < 0.4:
        change = generator.choice(_BYTES)
        for _ in range(generator.choice((1, 1, 2, 5))):
            content = change(content, generator)
        return content, change.__name__.strip("_")
    proto = onnx.ModelProto.FromString(content)
    done = []
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        change = generator.choice(_STRUCTURE)
        change(proto, generator)
        done.append(change.__name__.strip("_"))
    return proto.SerializeToString(), "+".join(done)


def _flip(content: bytes, generator: random.Random) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
    return bytes(changed)


def _overwrite(content: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(content) + 1)
    new = generator.randbytes(generator.choice((1, 2, 8)))
    return content[:start] + new + content[start + len(new) :]


def _insert(content: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(content) + 1)
    return content[:start] + generator.randbytes(generator.choice((1, 2, 8))) + content[start:]


def _delete(content: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(content) + 1)
    return content[:start] + content[start + generator.choice((1, 2, 8)) :]


def _truncate(content: bytes, generator: random.Random) -> bytes:
    return content[: generator.randrange(len(content) + 1)]


def _repeat(content: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(content) + 1)
    part = content[start : start + generator.choice((4, 32, 256))]
    return content[:start] + part + content[start:]


_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (_flip, _overwrite, _insert, _delete, _truncate, _repeat)

#: Numbers at which arithmetic breaks.
_INTEGERS = (0, 1, -1, 2, 3, 7, -2, 127, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, -(2**63), 2**63 - 1)
_FLOATS = (0.0, -1.0, 1e-38, 1e38, float("inf"), float("-inf"), float("nan"), 0.5, 3.0)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _node(proto: onnx.ModelProto, generator: random.Random) -> onnx.NodeProto:
    nodes = [node for graph in _graphs(proto.graph) for node in graph.node]
    return generator.choice(nodes) if nodes else onnx.NodeProto()


def _names(proto: onnx.ModelProto) -> list[str]:
    names = ["", "nothing"]
    for graph in _graphs(proto.graph):
        names += [value.name for value in (*graph.input, *graph.output)]
        names += [tensor.name for tensor in graph.initializer]
        names += [name for node in graph.node for name in (*node.input, *node.output)]
    return names


def _value(proto: onnx.ModelProto, generator: random.Random) -> Any:
    graph = generator.choice(list(_graphs(proto.graph)))
    values = [*graph.input, *graph.output, *graph.value_info]
    return generator.choice(values) if values else onnx.ValueInfoProto()


def _tensor(proto: onnx.ModelProto, generator: random.Random) -> onnx.TensorProto:
    tensors = list(proto.graph.initializer)
    tensors += [a.t for node in proto.graph.node for a in node.attribute if a.HasField("t")]
    return generator.choice(tensors) if tensors else onnx.TensorProto()


def _swap_inputs(proto: onnx.ModelProto, generator: random.Random) -> None:
    node = _node(proto, generator)
    names = list(node.input)
    generator.shuffle(names)
    node.input[:] = names


def _rewire(proto: onnx.ModelProto, generator: random.Random) -> None:
    node = _node(proto, generator)
    if node.input:
        node.input[generator.randrange(len(node.input))] = generator.choice(_names(proto))


def _add_input(proto: onnx.ModelProto, generator: random.Random) -> None:
    _node(proto, generator).input.append(generator.choice(_names(proto)))


def _drop_input(proto: onnx.ModelProto, generator: random.Random) -> None:
    node = _node(proto, generator)
    if node.input:
        del node.input[generator.randrange(len(node.input))]


def _rename_output(proto: onnx.ModelProto, generator: random.Random) -> None:
    node = _node(proto, generator)
    if node.output:
        node.output[generator.randrange(len(node.output))] = generator.choice(_names(proto))


def _change_outputs(proto: onnx.ModelProto, generator: random.Random) -> None:
    node = _node(proto, generator)
    if generator.random() < 0.5:
        node.output.append(generator.choice(("", "more")))
    elif node.output:
        del node.output[-1]


def _drop_node(proto: onnx.ModelProto, generator: random.Random) -> None:
    nodes = generator.choice(list(_graphs(proto.graph))).node
    if nodes:
        del nodes[generator.randrange(len(nodes))]


def _copy_node(proto: onnx.ModelProto, generator: random.Random) -> None:
    proto.graph.node.add().CopyFrom(_node(proto, generator))


def _reverse_nodes(proto: onnx.ModelProto, generator: random.Random) -> None:
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))


def _change_operator(proto: onnx.ModelProto, generator: random.Random) -> None:
    node = _node(proto, generator)
    others = [other.op_type for other in proto.graph.node]
    node.op_type = generator.choice((*others, "Relu", "Add", "Conv", "Nothing", "", "Loop", "Softmax", "Reshape"))


def _change_domain(proto: onnx.ModelProto, generator: random.Random) -> None:
    _node(proto, generator).domain = generator.choice(("ai.onnx", "ai.onnx.ml", "deep500", "elsewhere", ""))


def _change_attribute(proto: onnx.ModelProto, generator: random.Random) -> None:
    node = _node(proto, generator)
    if not node.attribute:
        return
    attribute = generator.choice(list(node.attribute))
    kinds = onnx.AttributeProto
    if attribute.type == kinds.INT:
        attribute.i = generator.choice(_INTEGERS)
    elif attribute.type == kinds.FLOAT:
        attribute.f = generator.choice(_FLOATS)
    elif attribute.type == kinds.STRING:
        attribute.s = generator.choice((b"", b"nothing", b"\xff", attribute.s + b"x"))
    elif attribute.type == kinds.INTS:
        if attribute.ints and generator.random() < 0.6:
            attribute.ints[generator.randrange(len(attribute.ints))] = generator.choice(_INTEGERS)
        else:
            attribute.ints.append(generator.choice(_INTEGERS))
    elif attribute.type == kinds.FLOATS:
        attribute.floats.append(generator.choice(_FLOATS))
    if generator.random() < 0.1:
        attribute.type = generator.choice(list(kinds.AttributeType.values()))


def _drop_attribute(proto: onnx.ModelProto, generator: random.Random) -> None:
    node = _node(proto, generator)
    if node.attribute:
        del node.attribute[generator.randrange(len(node.attribute))]


def _add_attribute(proto: onnx.ModelProto, generator: random.Random) -> None:
    name = generator.choice(("axis", "axes", "perm", "alpha", "to", "epsilon", "keepdims", "kernel_shape", "nothing"))
    value: Any = generator.choice((generator.choice(_INTEGERS), generator.choice(_FLOATS), [1, 2], "text"))
    _node(proto, generator).attribute.append(onnx.helper.make_attribute(name, value))


def _change_type(proto: onnx.ModelProto, generator: random.Random) -> None:
    _value(proto, generator).type.tensor_type.elem_type = generator.choice((*range(27), -1, 99))


def _change_shape(proto: onnx.ModelProto, generator: random.Random) -> None:
    dims = _value(proto, generator).type.tensor_type.shape.dim
    what = generator.randrange(4)
    if what == 0 and dims:
        generator.choice(list(dims)).dim_value = generator.choice(_INTEGERS)
    elif what == 1 and dims:
        generator.choice(list(dims)).dim_param = generator.choice(("n", "batch", "", "n+1"))
    elif what == 2 and dims:
        del dims[generator.randrange(len(dims))]
    else:
        dims.add().dim_value = generator.choice((1, 2, 0))


def _drop_shape(proto: onnx.ModelProto, generator: random.Random) -> None:
    _value(proto, generator).type.tensor_type.ClearField("shape")


def _change_tensor(proto: onnx.ModelProto, generator: random.Random) -> None:
    tensor = _tensor(proto, generator)
    what = generator.randrange(6)
    if what == 0:
        tensor.data_type = generator.choice((*range(27), 99))
    elif what == 1 and tensor.dims:
        tensor.dims[generator.randrange(len(tensor.dims))] = generator.choice(_INTEGERS)
    elif what == 2:
        tensor.dims.append(generator.choice((1, 0, 2, -1)))
    elif what == 3:
        tensor.raw_data = tensor.raw_data[: generator.randrange(len(tensor.raw_data) + 1)]
    elif what == 4:
        tensor.raw_data = generator.randbytes(len(tensor.raw_data))
    else:
        tensor.name = generator.choice(_names(proto))


def _drop_tensor(proto: onnx.ModelProto, generator: random.Random) -> None:
    if proto.graph.initializer:
        del proto.graph.initializer[generator.randrange(len(proto.graph.initializer))]


def _make_external(proto: onnx.ModelProto, generator: random.Random) -> None:
    tensor = _tensor(proto, generator)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=generator.choice(("/etc/passwd", "../x", "x", "")))


def _duplicate_name(proto: onnx.ModelProto, generator: random.Random) -> None:
    value = _value(proto, generator)
    value.name = generator.choice(_names(proto))


def _change_opset(proto: onnx.ModelProto, generator: random.Random) -> None:
    if proto.opset_import:
        entry = generator.choice(list(proto.opset_import))
        entry.version = generator.choice(
            (0, -1, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 20, 22, 24, 28, 99, 2**40)
        )


def _change_imports(proto: onnx.ModelProto, generator: random.Random) -> None:
    if generator.random() < 0.5:
        del proto.opset_import[:]
    else:
        proto.opset_import.add(domain=generator.choice(("", "ai.onnx", "elsewhere")), version=generator.randrange(30))


def _change_versions(proto: onnx.ModelProto, generator: random.Random) -> None:
    proto.ir_version = generator.choice((0, 1, 3, 4, 8, 10, 13, 99, 2**40))


def _drop_output(proto: onnx.ModelProto, generator: random.Random) -> None:
    values = generator.choice((proto.graph.input, proto.graph.output))
    if values:
        del values[generator.randrange(len(values))]


_STRUCTURE: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    _swap_inputs, _rewire, _add_input, _drop_input, _rename_output, _change_outputs, _drop_node, _copy_node,
    _reverse_nodes, _change_operator, _change_domain, _change_attribute, _change_attribute, _change_attribute,
    _drop_attribute, _add_attribute, _change_type, _change_shape, _change_shape, _drop_shape, _change_tensor,
    _change_tensor, _drop_tensor, _make_external, _duplicate_name, _change_opset, _change_opset, _change_imports,
    _change_versions, _drop_output,
)  # fmt: skip
