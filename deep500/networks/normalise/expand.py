"""Operators that are defined by others, replaced by their definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnx.inliner
import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnx import defs

from deep500.core.errors import InvalidNetworkError
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole

__all__ = ["expand_functions"]

#: Says of an operator (domain, name, version of the domain) whether it is to be left as it is.
IsKept = Callable[[str, str, int], bool]

#: Domain of the functions while they are inlined; no model uses it.
_DOMAIN = "deep500.expanded"


def expand_functions(model: ir.Model, is_kept: IsKept) -> ir.Model | None:
    """Replace operators that ONNX defines as functions of others, again and again until there is nothing to do.

    Args:
        model: A normalised model; it is not changed.
        is_kept: Which operators an adapter runs itself.

    Returns:
        A model without them, or ``None`` where there is none to replace.

    Raises:
        InvalidNetworkError: A definition cannot be inlined.
    """
    expanded, current = None, model
    while any(_is_expandable(node, current, is_kept) for node in current.graph.all_nodes()):
        found = _expand_once(current, is_kept)
        if found is None:  # definitions that depend on types which nobody knows
            break
        expanded = current = found
    return expanded


def _version(node: ir.Node, model: ir.Model) -> int:
    return node.version or model.graph.opset_imports.get(node.domain, 1)


def _schema(node: ir.Node, version: int) -> Any:
    try:
        return defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return None


def _is_expandable(node: ir.Node, model: ir.Model, is_kept: IsKept) -> bool:
    version = _version(node, model)
    if is_kept(node.domain, node.op_type, version):
        return False
    schema = _schema(node, version)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def _expand_once(model: ir.Model, is_kept: IsKept) -> ir.Model | None:
    copy = ir.from_proto(ir.to_proto(model))
    functions: list[onnx.FunctionProto] = []
    imports = dict(copy.graph.opset_imports)
    for index, node in enumerate(list(copy.graph.all_nodes())):
        if not _is_expandable(node, copy, is_kept):
            continue
        function = _definition(node, _version(node, copy))
        if function is None:
            continue
        _drop_absent_outputs(function)
        function.domain, function.name = _DOMAIN, f"{node.op_type}_{index}"
        for imported in function.opset_import:
            imports.setdefault(imported.domain, imported.version)
        functions.append(function)
        _add_defaults(node, _version(node, copy))
        node.domain, node.op_type = function.domain, function.name
        node.version = None
    return _inlined(copy, functions, imports) if functions else None


def _drop_absent_outputs(function: onnx.FunctionProto) -> None:
    """Drop the outputs that a definition made for one node leaves out, since that node does not want them."""
    computed = {*function.input, *(name for node in function.node for name in node.output)}
    while function.output and function.output[-1] not in computed:
        function.output.pop()
    for name in function.output:
        if name not in computed:  # one that is followed by others has to stay where it is
            function.node.append(onnx.helper.make_node("Constant", [], [name], value_float=0.0))


def _add_defaults(node: ir.Node, version: int) -> None:
    """Write down ONNX' defaults of attributes that a node leaves out: the function's nodes refer to them."""
    schema = _schema(node, version)
    assert schema is not None
    for name, attribute in schema.attributes.items():
        if name not in node.attributes and attribute.default_value.name:
            node.attributes[name] = ir.from_proto(attribute.default_value)


def _inlined(copy: ir.Model, functions: list[onnx.FunctionProto], imports: dict[str, int]) -> ir.Model:
    known = {v.name: v for v in (*copy.graph.inputs, *copy.graph.outputs, *copy.graph.initializers.values())}
    proto = ir.to_proto(copy)
    proto.functions.extend(functions)
    del proto.opset_import[:]
    imports[_DOMAIN] = 1
    proto.opset_import.extend(onnx.helper.make_opsetid(domain, version) for domain, version in imports.items())
    try:
        # ONNX' own inliner also brings a definition of an older opset to the model's.
        inlined = ir.from_proto(onnx.inliner.inline_local_functions(proto, convert_version=True))
        for step in (
            passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
            passes.TopologicalSortPass(),
            passes.ShapeInferencePass(strict_mode=False),
        ):
            inlined = step(inlined).model
    except Exception as error:
        # onnx_ir reports what it cannot inline by exceptions of unrelated types.
        names = ", ".join(sorted({function.name.rpartition("_")[0] for function in functions}))
        raise InvalidNetworkError(f"The ONNX definition of {names} cannot be inlined: {error}") from error
    inlined.graph.opset_imports.pop(_DOMAIN, None)
    for name in copy.graph.initializers:  # in the order that they had
        inlined.graph.initializers[name] = inlined.graph.initializers.pop(name)
    for value in (*inlined.graph.inputs, *inlined.graph.outputs, *inlined.graph.initializers.values()):
        if value.name in known:  # the inliner drops what is known of values beside their type
            value.metadata_props.update(known[value.name].metadata_props)
        elif value.is_initializer():
            value.metadata_props.setdefault(ROLE_KEY, TensorRole.CONSTANT.value)
    return inlined


def _definition(node: ir.Node, version: int) -> onnx.FunctionProto | None:
    """Return ONNX' definition of an operator for the inputs of a node."""
    schema = _schema(node, version)
    assert schema is not None
    proto = ir.to_proto(node)
    if schema.has_function:
        bodies = [v for v in schema.function_opset_versions if v <= version]
        if bodies:
            return _function(schema.get_function_with_opset_version(max(bodies)))
    if schema.has_context_dependent_function:
        types = [_type_proto(value) for value in node.inputs]
        bodies = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        if bodies and all(kind is not None for kind in types):
            found = schema.get_context_dependent_function_with_opset_version(
                max(bodies), proto.SerializeToString(), [kind.SerializeToString() for kind in types if kind]
            )
            return _function(found)
    return None


def _function(content: bytes) -> onnx.FunctionProto:
    function = onnx.FunctionProto()
    function.ParseFromString(content)
    return function


def _type_proto(value: ir.Value | None) -> onnx.TypeProto | None:
    if value is None:
        return onnx.TypeProto()
    return None if value.type is None else ir.to_proto(value).type
