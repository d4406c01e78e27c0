"""From the text of an ``op:`` workload to the tensors and attributes of one ONNX operator, and a network of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.shape_inference
from numpy.typing import NDArray

from deep500.core.errors import InvalidInputError, InvalidNetworkError, MeasurementError, near_miss
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import one_line, shown
from deep500.measure.workload import WorkloadSpec
from deep500.networks.network import Network
from deep500.networks.normalise.model import IR_VERSION, OPSET_VERSION
from deep500.networks.tensor_roles import ROLE_KEY, TensorRole
from deep500.workloads._options import Options

__all__ = ["OperatorCall", "build_network", "read_call"]

#: Name of the scalar of which the gradient is taken, and of the random tensor that it weighs the output with.
LOSS, WEIGHTS = "deep500.loss", "deep500.weights"

_ATTRIBUTE = onnx.defs.OpSchema.AttrType
_OPTION = onnx.defs.OpSchema.FormalParameterOption

#: Attributes that hold an element type, and are given as its name.
_DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")

#: What a workload measures of an operator.
_MODES = ("forward", "gradient")

#: An input that takes no more than these is given by its values.
_POSITIONS = {"tensor(int32)", "tensor(int64)"}

#: Inputs of this kind that are scalars; others are lists, which a number alone stands for as well.
_SCALARS = ("axis", "dft_length", "frame_length", "frame_step", "k")

#: Inputs that are of one dtype whatever that of the others is.
_FLOAT_TYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}


@dataclass(frozen=True)
class OperatorCall:
    """One operator with its attributes and the form of its inputs.

    Attributes:
        op_type: The operator's name.
        version: The opset in which it got its present form.
        attributes: Its attributes that were given.
        inputs: Names of the inputs in the operator's order, ``""`` for an absent one before a present one.
        tensors: Dtype and shape of the inputs whose values are made up, by name.
        constants: The inputs whose values were given, by name: axes, shapes, bounds.
        outputs: Dtype and shape of the outputs, as far as ONNX can tell.
        is_gradient: Whether forward and gradient are meant, or forward alone.
    """

    op_type: str
    version: int
    attributes: Mapping[str, Any]
    inputs: tuple[str, ...]
    tensors: Mapping[str, TensorDescriptor]
    constants: Mapping[str, NDArray[Any]]
    outputs: tuple[TensorDescriptor, ...]
    is_gradient: bool

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return [f"deep500.output.{index}" for index in range(len(self.outputs))]


def read_call(spec: WorkloadSpec) -> tuple[OperatorCall, int]:
    """Return the operator that a workload's text calls, and the seed of its values.

    Raises:
        MeasurementError: There is no such operator, or it takes no such inputs or attributes.
    """
    schema = _schema(spec.name)
    options = Options(spec)
    parameters = [parameter.name for parameter in schema.inputs]
    own = {*parameters, *schema.attributes}
    # A name that the operator has itself is the operator's; but no operator has a mode of these names.
    is_own_mode = "mode" in own and spec.options.get("mode", "forward") not in _MODES
    mode = "forward" if is_own_mode else options.choice("mode", "forward", _MODES)
    dtype = "float32" if "dtype" in own else _dtype(options.text("dtype", "float32"), "dtype")
    seed = 0 if "seed" in own else options.seed()
    given = options.rest([*parameters, *schema.attributes])
    options.finish()
    attributes = {name: _attribute(schema, name, value) for name, value in given.items() if name in schema.attributes}
    missing = [name for name, entry in schema.attributes.items() if entry.required and name not in attributes]
    if missing:
        raise MeasurementError(f"{spec.name} needs the attribute {missing[0]}; give it as {missing[0]}=value.")
    tensors: dict[str, TensorDescriptor] = {}
    constants: dict[str, NDArray[Any]] = {}
    inputs = _read_inputs(schema, given, dtype, tensors, constants)
    outputs = _infer_outputs(spec, schema, attributes, inputs, tensors, constants)
    if not tensors:
        raise MeasurementError(
            f"{spec.text!r} gives no input by its shape, so that all could be computed before the runs. Accepted is at "
            "least one, such as 1x3x32x32."
        )
    call = OperatorCall(
        spec.name, schema.since_version, attributes, inputs, tensors, constants, outputs, mode == "gradient"
    )
    if call.is_gradient and not (outputs[0].dtype in _FLOATING and any(t.dtype in _FLOATING for t in tensors.values())):
        raise MeasurementError(
            f"{spec.text!r} asks for a gradient, but the output {outputs[0]} or the inputs are of no floating dtype."
        )
    if call.is_gradient and not outputs[0].is_static:
        raise MeasurementError(f"{spec.text!r} asks for a gradient, but the size of the output {outputs[0]} is open.")
    return call, seed


_FLOATING = ("float16", "bfloat16", "float32", "float64")


def build_network(call: OperatorCall, stored: Mapping[str, NDArray[Any]]) -> Network:
    """Return a network of the operator; for a gradient, with a scalar in which every output element has a weight.

    The scalar is the scalar product of the first output and a tensor that is fed, so that the gradient by the output is
    that tensor, as it is some tensor in a training.

    Args:
        call: The operator.
        stored: Values of inputs that are parameters of the network; all others are fed.

    Raises:
        MeasurementError: ONNX refuses it.
    """
    helper = onnx.helper
    nodes = [
        helper.make_node(call.op_type, call.inputs, call.output_names, name=call.op_type, **_of_node(call.attributes))
    ]
    fed = [name for name in call.tensors if name not in stored]
    values = {**call.constants, **stored}
    inputs = [_value_info(name, call.tensors[name]) for name in fed]
    outputs = [_value_info(name, kind) for name, kind in zip(call.output_names, call.outputs, strict=True)]
    if call.is_gradient:
        first = call.outputs[0]
        count = first.element_count or 0
        values["deep500.row"] = np.array([1, count], np.int64)
        values["deep500.scalar"] = np.array([], np.int64)
        nodes += [
            helper.make_node("Reshape", [call.output_names[0], "deep500.row"], ["deep500.flat"], name="flat"),
            helper.make_node("MatMul", ["deep500.flat", WEIGHTS], ["deep500.product"], name="product"),
            helper.make_node("Reshape", ["deep500.product", "deep500.scalar"], [LOSS], name="scalar"),
        ]
        inputs.append(_value_info(WEIGHTS, TensorDescriptor(first.dtype, (count, 1))))
        outputs.append(_value_info(LOSS, TensorDescriptor(first.dtype, ())))
    initializers = [onnx.numpy_helper.from_array(value, name) for name, value in values.items()]
    graph = helper.make_graph(nodes, call.op_type, inputs, outputs, initializers)
    opset = [helper.make_opsetid("", max(OPSET_VERSION, call.version))]
    try:
        network = Network.load(helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION))
    except InvalidNetworkError as error:
        raise MeasurementError(f"ONNX refuses {call.op_type} with these inputs: {one_line(str(error))}") from error
    for name in call.constants:  # what was given by value is no parameter, whatever its dtype
        network.model.graph.initializers[name].metadata_props[ROLE_KEY] = TensorRole.CONSTANT.value
    return network


def _of_node(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes without the one that is the mode of the whole network here."""
    return {name: value for name, value in attributes.items() if name != "training_mode"}


def _schema(name: str) -> Any:
    """Return ONNX' description of an operator, as of the networks' opset, or of a later one where it began."""
    known = {entry.name for entry in onnx.defs.get_all_schemas() if entry.domain == ""}
    if name not in known:
        raise MeasurementError(
            f"There is no ONNX operator {name!r}.{near_miss(name, sorted(known))} Those that every framework here "
            "runs: deep500 list operators; their names are written as ONNX does, such as Conv."
        )
    try:
        schema = onnx.defs.get_schema(name, OPSET_VERSION, "")
    except onnx.defs.SchemaError:
        schema = onnx.defs.get_schema(name, "")
    graphs = [n for n, a in schema.attributes.items() if a.type in (_ATTRIBUTE.GRAPH, _ATTRIBUTE.GRAPHS)]
    if graphs:
        raise MeasurementError(f"{name} takes a graph ({graphs[0]}); only operators of tensors can be measured.")
    return schema


def _read_inputs(
    schema: Any,
    given: Mapping[str, Any],
    dtype: str,
    tensors: dict[str, TensorDescriptor],
    constants: dict[str, NDArray[Any]],
) -> tuple[str, ...]:
    """Sort the given inputs into tensors and constants; return all names in the operator's order."""
    names: list[str] = []
    for parameter in schema.inputs:
        name = parameter.name
        if name not in given:
            if parameter.option != _OPTION.Optional:
                accepted = ", ".join(entry.name for entry in schema.inputs)
                several = "=[2x3,2x3]" if parameter.option == _OPTION.Variadic else "=1x3x32x32"
                raise MeasurementError(
                    f"{schema.name} needs the input {name}; give its shape as {name}{several}. Its inputs: {accepted}."
                )
            names.append("")
        elif parameter.option == _OPTION.Variadic:
            for index, part in enumerate(_parts(name, given[name])):
                names.append(f"{name}.{index}")
                tensors[names[-1]] = _tensor(name, part, dtype)
        else:
            names.append(name)
            value = _constant(name, given[name], parameter.types, dtype)
            if value is None:
                tensors[name] = _tensor(name, given[name], dtype)
            else:
                constants[name] = value
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def _constant(name: str, value: Any, types: Collection[str], dtype: str) -> NDArray[Any] | None:
    """Return the value of an input that is given by value, ``None`` for one that is given by shape.

    Where ONNX takes int32 or int64 only (axes, a shape), whole numbers are values; elsewhere numbers with a point are.
    """
    items = value if isinstance(value, (list, tuple)) else [value]
    if set(types) <= _POSITIONS and not isinstance(value, str):
        if not all(_whole(item) is not None for item in items):
            raise MeasurementError(f"{name} was given as {shown(value)}; accepted are whole numbers, such as [0,1].")
        kind = np.int64 if "tensor(int64)" in types else np.int32
        return np.array(value if name in _SCALARS else items, kind)
    numbers = list(_flat(items))
    if any(type(item) is float for item in numbers) and all(type(item) in (int, float) for item in numbers):
        only = _FLOAT_TYPES.get(next(iter(types))) if len(types) == 1 else None
        return np.array(value, np.float64).astype(TensorDescriptor(only or dtype).numpy_dtype)
    return None


def _flat(items: Iterable[Any]) -> Iterator[Any]:
    """Yield what lists in lists hold."""
    for item in items:
        yield from _flat(item) if isinstance(item, (list, tuple)) else (item,)


def _parts(name: str, value: Any) -> list[Any]:
    """Return the shapes of an input that may be given several times: ``[2x3,2x3]``."""
    if isinstance(value, str) and value[:1] in ("[", "(") and value[-1:] in ("]", ")"):
        value = [part.strip() for part in value[1:-1].split(",")]
    if not isinstance(value, (list, tuple)) or not value:
        raise MeasurementError(f"{name} was given as {shown(value)}; accepted is a list of shapes, such as [2x3,2x3].")
    return list(value)


def _tensor(name: str, value: Any, dtype: str) -> TensorDescriptor:
    """Return the tensor of ``1x3x32x32``, ``(1, 3, 32, 32)``, ``4:int64`` or ``scalar``."""
    text = "x".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    shape, colon, given = text.partition(":")
    sizes = re.fullmatch(r"[0-9]{1,18}(x[0-9]{1,18})*", shape.strip().lower())
    if not sizes and shape.strip() != "scalar":
        raise MeasurementError(
            f"{name} was given as {shown(value)}; accepted is a shape such as 1x3x32x32 or scalar, with another dtype "
            "after a colon, such as 4:int64."
        )
    kind = _dtype(given.strip(), name) if colon else dtype
    return TensorDescriptor(kind, [int(size) for size in sizes[0].split("x")] if sizes else [])


def _dtype(name: str, option: str) -> str:
    try:
        return TensorDescriptor(name).dtype
    except InvalidInputError as error:
        raise MeasurementError(f"{option} does not name a dtype: {error}") from error


def _attribute(schema: Any, name: str, value: Any) -> Any:
    """Return an attribute in the type that ONNX wants.

    Raises:
        MeasurementError: It has another one.
    """
    kind = schema.attributes[name].type
    if kind == _ATTRIBUTE.INT and name in _DTYPE_ATTRIBUTES and isinstance(value, str):
        return onnx.helper.np_dtype_to_tensor_dtype(TensorDescriptor(_dtype(value, name)).numpy_dtype)
    checks: dict[Any, tuple[str, Any]] = {
        _ATTRIBUTE.INT: ("a whole number", _whole),
        _ATTRIBUTE.FLOAT: ("a number", _number),
        _ATTRIBUTE.STRING: ("a text", lambda v: v if isinstance(v, str) else None),
        _ATTRIBUTE.INTS: ("a list of whole numbers, such as [1,1]", lambda v: _each(v, _whole)),
        _ATTRIBUTE.FLOATS: ("a list of numbers, such as [0.5,1]", lambda v: _each(v, _number)),
        _ATTRIBUTE.STRINGS: ("a list of texts", lambda v: _each(v, lambda w: w if isinstance(w, str) else None)),
    }
    accepted, check = checks.get(kind, ("nothing: attributes of this type cannot be given here", lambda v: None))
    checked = check(value)
    if checked is None:
        raise MeasurementError(f"{name} of {schema.name} was given as {shown(value)}; accepted is {accepted}.")
    return checked


def _whole(value: Any) -> int | None:
    return int(value) if type(value) in (int, bool) and -(2**63) <= value < 2**63 else None


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and abs(value) < 1e308 else None


def _each(value: Any, check: Any) -> list[Any] | None:
    items = [check(item) for item in value] if isinstance(value, (list, tuple)) else [None]
    return None if None in items or not items else items


def _infer_outputs(
    spec: WorkloadSpec,
    schema: Any,
    attributes: Mapping[str, Any],
    inputs: Sequence[str],
    tensors: Mapping[str, TensorDescriptor],
    constants: Mapping[str, NDArray[Any]],
) -> tuple[TensorDescriptor, ...]:
    """Return what ONNX says of the outputs that the operator always has."""
    names = [f"output{index}" for index in range(max(1, schema.min_output))]
    node = onnx.helper.make_node(spec.name, inputs, names, **_of_node(attributes))
    kinds = {name: _value_info(name, kind).type for name, kind in tensors.items()}
    data = {name: onnx.numpy_helper.from_array(value, name) for name, value in constants.items()}
    kinds |= {name: onnx.helper.make_tensor_type_proto(t.data_type, list(t.dims)) for name, t in data.items()}
    try:
        inferred = onnx.shape_inference.infer_node_outputs(
            schema,
            node,
            kinds,
            data,
            opset_imports=[onnx.helper.make_opsetid("", max(OPSET_VERSION, schema.since_version))],
            ir_version=IR_VERSION,
        )
    except Exception as error:
        # onnx reports what does not fit by exceptions of unrelated types.
        given = _listed({**tensors, **{n: TensorDescriptor(v.dtype, v.shape) for n, v in constants.items()}})
        raise MeasurementError(f"ONNX refuses {spec.name} of {given}: {one_line(str(error))}") from error
    first = next(iter(tensors.values()), TensorDescriptor("float32"))
    return tuple(_described(inferred.get(name), first.dtype) for name in names)


def _listed(tensors: Mapping[str, TensorDescriptor]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in tensors.items())


def _described(proto: Any, dtype: str) -> TensorDescriptor:
    """Return a type that ONNX inferred; where it could not tell, the given dtype and no shape."""
    if proto is None or not proto.tensor_type.elem_type:
        return TensorDescriptor(dtype)
    found = onnx.helper.tensor_dtype_to_np_dtype(proto.tensor_type.elem_type)
    if not proto.tensor_type.HasField("shape"):
        return TensorDescriptor(found)
    return TensorDescriptor(
        found, [d.dim_value if d.HasField("dim_value") else None for d in proto.tensor_type.shape.dim]
    )


def _value_info(name: str, kind: TensorDescriptor) -> Any:
    element = onnx.helper.np_dtype_to_tensor_dtype(kind.numpy_dtype)
    return onnx.helper.make_tensor_value_info(name, element, kind.shape)
