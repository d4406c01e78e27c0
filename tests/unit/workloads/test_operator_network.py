from __future__ import annotations

import numpy as np
import onnx
import pytest

from deep500.core.errors import MeasurementError
from deep500.measure.workload import parse_workload
from deep500.workloads._operator_network import LOSS, WEIGHTS, OperatorCall, build_network, read_call


def read(text: str) -> OperatorCall:
    return read_call(parse_workload(text))[0]


def forms(call: OperatorCall) -> dict[str, str]:
    return {name: str(descriptor) for name, descriptor in call.tensors.items()}


def refusal(text: str) -> str:
    with pytest.raises(MeasurementError) as caught:
        read(text)
    return str(caught.value)


# --- reading ----------------------------------------------------------------------------------------------------------


def test_inputs_and_attributes_have_their_names_in_onnx() -> None:
    call, seed = read_call(parse_workload("op:Conv,W=8x3x3x3,X=1x3x32x32,pads=[1,1,1,1],seed=5"))

    assert (call.op_type, call.version, seed, call.is_gradient) == ("Conv", 22, 5, False)
    assert call.inputs == ("X", "W")
    assert forms(call) == {"X": "float32[1, 3, 32, 32]", "W": "float32[8, 3, 3, 3]"}
    assert call.attributes == {"pads": [1, 1, 1, 1]}
    assert list(map(str, call.outputs)) == ["float32[1, 8, 32, 32]"]


@pytest.mark.parametrize(
    ("text", "tensors"),
    [
        ("op:Relu,X=3", {"X": "float32[3]"}),
        ("op:Relu,X=scalar", {"X": "float32[]"}),
        ("op:Relu,X=scalar:float64", {"X": "float64[]"}),
        ("op:Relu,X=2X3", {"X": "float32[2, 3]"}),
        ("op:Relu,X=(2,3)", {"X": "float32[2, 3]"}),
        ("op:Relu,X=[2,3]", {"X": "float32[2, 3]"}),
        ("op:Relu,X=0x3", {"X": "float32[0, 3]"}),
        ("op:Relu,X=2x3,dtype=float16", {"X": "float16[2, 3]"}),
        ("op:Relu,X='2x3: bfloat16'", {"X": "bfloat16[2, 3]"}),
        ("op:Concat,inputs=[2x3,2x5],axis=1", {"inputs.0": "float32[2, 3]", "inputs.1": "float32[2, 5]"}),
        ("op:Concat,inputs=['2x3:int64',(4,3):int64],axis=0", {}),
        ("op:Concat,inputs=['2x3:int64','4x3:int64'],axis=0", {"inputs.0": "int64[2, 3]", "inputs.1": "int64[4, 3]"}),
        ("op:Concat,inputs=[4,5],axis=0", {"inputs.0": "float32[4]", "inputs.1": "float32[5]"}),
    ],
)
def test_forms_of_shapes(text: str, tensors: dict[str, str]) -> None:
    if not tensors:
        assert "accepted is a shape" in refusal(text)
        return
    assert forms(read(text)) == tensors


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("op:Reshape,data=2x6,shape=[3,-1]", "shape", np.array([3, -1], np.int64)),
        ("op:ReduceSum,data=2x6,axes=1", "axes", np.array([1], np.int64)),
        ("op:Reshape,data=1,shape=[]", "shape", np.array([], np.int64)),
        ("op:Clip,input=3,min=-1.0", "min", np.array(-1.0, np.float32)),
        ("op:Clip,input=3,min=0.5,dtype=float64", "min", np.array(0.5)),
        ("op:Pow,X=3,Y=[1,2.5,3]", "Y", np.array([1, 2.5, 3], np.float32)),
        ("op:Pow,X=2x2,Y=[[1.0,2],[3,4]]", "Y", np.array([[1, 2], [3, 4]], np.float32)),
        ("op:CumSum,x=2x6,axis=1", "axis", np.array(1, np.int64)),
        ("op:TopK,X=6,K=2", "K", np.array([2], np.int64)),
        (
            "op:GRU,X=3x2x4,W=1x15x4,R=1x15x5,hidden_size=5,sequence_lens=[3,2]",
            "sequence_lens",
            np.array([3, 2], np.int32),
        ),
        ("op:Resize,X=2,scales=[2.0],dtype=float64", "scales", np.array([2], np.float32)),
    ],
)
def test_values_of_inputs(text: str, name: str, value: np.ndarray) -> None:
    constants = read(text).constants

    assert list(constants) == [name]
    assert (constants[name].dtype, constants[name].shape) == (value.dtype, value.shape)
    assert np.array_equal(constants[name], value)


def test_absent_optional_input_keeps_its_place() -> None:
    assert read("op:Clip,input=3,max=6.0").inputs == ("input", "", "max")
    assert read("op:Clip,input=3").inputs == ("input",)


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("op:Cast,input=3,to=float16", {"to": onnx.TensorProto.FLOAT16}),
        ("op:Cast,input=3,to=7", {"to": 7}),
        ("op:LeakyRelu,X=3,alpha=1", {"alpha": 1.0}),
        ("op:Gemm,A=2x3,B=4x3,transB=True", {"transB": 1}),
        ("op:Transpose,data=2x3,perm=(1,0)", {"perm": [1, 0]}),
        ("op:MaxPool,X=1x1x4x4,kernel_shape=[2,2],auto_pad=VALID", {"kernel_shape": [2, 2], "auto_pad": "VALID"}),
    ],
)
def test_types_of_attributes(text: str, attributes: dict[str, object]) -> None:
    found = read(text).attributes

    assert found == attributes
    assert {name: type(value) for name, value in found.items()} == {n: type(v) for n, v in attributes.items()}


def test_name_that_the_operator_has_is_the_operators() -> None:
    """Resize has an attribute ``mode``, RandomNormalLike ``dtype`` and ``seed``."""
    resize = read("op:Resize,X=1x1x4x4,scales=[1.0,1.0,2.0,2.0],mode=linear")
    random, seed = read_call(parse_workload("op:RandomNormalLike,input=3,seed=3,dtype=float64"))

    assert resize.attributes["mode"] == "linear"
    assert not resize.is_gradient
    assert read("op:Resize,X=1x1x4x4,scales=[1.0,1.0,2.0,2.0],mode=gradient").is_gradient
    assert read("op:CumProd,x=3,axis=0").version == 26
    assert random.attributes == {"seed": 3.0, "dtype": onnx.TensorProto.DOUBLE}
    assert (seed, forms(random)) == (0, {"input": "float32[3]"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op:conv,X=1", "no ONNX operator 'conv'. Did you mean 'Conv'?"),
        ("op:No\x00,X=1", "no ONNX operator"),
        ("op:If,cond=1", "If takes a graph (else_branch)"),
        ("op:Conv", "Conv needs the input X; give its shape as X=1x3x32x32. Its inputs: X, W, B."),
        ("op:Conv,X=1x3x8x8", "Conv needs the input W"),
        ("op:Concat,axis=0", "give its shape as inputs=[2x3,2x3]"),
        ("op:Concat,inputs=[2x3]", "Concat needs the attribute axis"),
        ("op:Concat,inputs=2x3,axis=0", "accepted is a list of shapes"),
        ("op:Concat,inputs=[],axis=0", "accepted is a list of shapes"),
        ("op:Conv,X=1x3x8x8,W=4x3x3x3,pad=1", "unknown option 'pad'. Did you mean 'pads'?"),
        ("op:Conv,X=1x3x8x8,W=4x3x3x3,x=1", "unknown option 'x'."),
        ("op:Conv,X=1x3x8x8,W=4x3x3x3,pads=1", "pads of Conv was given as 1; accepted is a list of whole numbers"),
        ("op:Conv,X=1x3x8x8,W=4x3x3x3,pads=[1,'a']", "accepted is a list of whole numbers"),
        ("op:Conv,X=1x3x8x8,W=4x3x3x3,pads=[]", "accepted is a list of whole numbers"),
        ("op:Conv,X=1x3x8x8,W=4x3x3x3,group=1.5", "accepted is a whole number"),
        ("op:Conv,X=1x3x8x8,W=4x3x3x3,auto_pad=3", "accepted is a text"),
        (f"op:Conv,X=1x3x8x8,W=4x3x3x3,group={2**63}", "accepted is a whole number"),
        ("op:LeakyRelu,X=3,alpha=a", "accepted is a number"),
        ("op:LeakyRelu,X=3,alpha=1e999", "accepted is a number"),
        ("op:Cast,input=3,to=float77", "to does not name a dtype: 'float77'"),
        ("op:Constant,value=3", "attributes of this type cannot be given"),
        ("op:Relu,X=3,dtype=float77", "dtype does not name a dtype: 'float77'"),
        ("op:Relu,X=3:float77", "X does not name a dtype"),
        ("op:Relu,X=3:", "X does not name a dtype"),
        ("op:Relu,X=-3", "X was given as -3; accepted is a shape"),
        ("op:Relu,X=1xa", "accepted is a shape"),
        ("op:Relu,X=x3", "accepted is a shape"),
        ("op:Relu,X=None", "accepted is a shape"),
        ("op:Relu,X=", "accepted is a shape"),
        ("op:Relu,X=1x" + "9" * 30, "accepted is a shape"),
        ("op:Relu,X=[1.0,2.0]", "gives no input by its shape"),
        ("op:Constant,value_float=1.0", "gives no input by its shape"),
        ("op:Reshape,data=2x6,shape=[1.5]", "shape was given as [1.5]; accepted are whole numbers"),
        ("op:Conv,X=1x3x8x8,W=4x3x3x3,pads=[1,1]", "ONNX refuses Conv of X: float32[1, 3, 8, 8]"),
        ("op:Add,A=3,B=3:float64", "ONNX refuses Add of A: float32[3], B: float64[3]"),
        ("op:Relu,X=3,mode=backward", "accepted is one of forward, gradient"),
        ("op:Relu,X=3:int32,mode=gradient", "asks for a gradient, but the output int32[3]"),
        ("op:Cast,input=3,to=int64,mode=gradient", "asks for a gradient, but the output int64[3]"),
        ("op:Relu,X=3,seed=-1", "seed was given as -1"),
    ],
)
def test_what_the_operator_does_not_take_is_refused(text: str, message: str) -> None:
    found = refusal(text)
    assert message in found
    assert "\n" not in found


# --- the network ------------------------------------------------------------------------------------------------------


def test_network_of_one_node_is_fed_all_but_constants() -> None:
    network = build_network(read("op:Clip,input=4,max=6.0"), {})

    assert [node.op_type for node in network.model.graph] == ["Clip"]
    assert list(network.inputs) == ["input"]
    assert (list(network.parameters), list(network.constants)) == ([], ["max"])


def test_constant_is_no_parameter_whatever_its_dtype() -> None:
    network = build_network(read("op:Pow,X=4,Y=2.0"), {})

    assert (list(network.parameters), list(network.constants)) == ([], ["Y"])


def test_gradient_by_the_output_is_the_weights() -> None:
    call = read("op:Mul,A=2x3,B=2x3,mode=gradient,dtype=float64")
    stream = np.random.default_rng(0)
    a, b, w = (stream.standard_normal(shape) for shape in [(2, 3), (2, 3), (6, 1)])
    network = build_network(call, {"A": a, "B": b})

    from deep500.frameworks.reference.executor import from_model

    executor = from_model(network)
    outputs = executor.inference_and_backprop({WEIGHTS: w}, LOSS)

    assert list(network.parameters) == ["A", "B"]
    assert float(outputs[LOSS]) == pytest.approx(float(np.sum(a * b * w.reshape(2, 3))))
    gradients = dict(executor.network.gradient(LOSS))
    np.testing.assert_allclose(executor.network.fetch_tensors([gradients["A"]])[0], b * w.reshape(2, 3))


def test_network_that_onnx_refuses_is_refused_in_one_line() -> None:
    call = read("op:Relu,X=3")
    broken = OperatorCall("Relu", 14, {"no_attribute": 1}, call.inputs, call.tensors, {}, call.outputs, False)

    with pytest.raises(MeasurementError, match=r"ONNX refuses Relu with these inputs: .*no_attribute") as caught:
        build_network(broken, {})
    assert "\n" not in str(caught.value)
