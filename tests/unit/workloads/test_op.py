from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from deep500.core.errors import UnsupportedOperatorError
from deep500.core.registry import Registry
from deep500.frameworks.reference.executor import ReferenceExecutor
from deep500.frameworks.reference.lowering import lowerings
from deep500.measure.results.document import content_hash
from deep500.measure.workload import open_workload
from deep500.workloads import op as module
from tests.unit.workloads.support import opened, plain, refusal

CONV = "op:Conv,X=1x3x8x8,W=4x3x3x3,pads=[1,1,1,1]"


def test_run_executes_the_operator_on_tensors_that_were_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[Any] = []
    run = ReferenceExecutor._run
    monkeypatch.setattr(
        ReferenceExecutor, "_run", lambda self, program, inputs: fed.append(inputs) or run(self, program, inputs)
    )
    workload = open_workload(CONV)
    fed.clear()

    workload.run()
    workload.run()

    assert [[tensor.shape for tensor in tensors] for tensors in fed] == [[(1, 3, 8, 8), (4, 3, 3, 3)]] * 2
    assert all(a is b for a, b in zip(*fed, strict=True))


def test_tensors_are_the_frameworks_own() -> None:
    torch = pytest.importorskip("torch")

    workload: Any = open_workload(f"{CONV}@pytorch")

    assert all(isinstance(tensor, torch.Tensor) for tensor in workload._inputs.values())
    assert workload.factors["io"] == "the framework's tensors, on the device"


def test_identity_is_operator_inputs_attributes_and_mode() -> None:
    identity = open_workload(CONV).identity

    assert identity == {
        "problem": "operator",
        "operator": "Conv",
        "version": 22,
        "attributes": {"pads": [1, 1, 1, 1]},
        "inputs": {"X": "float32[1, 3, 8, 8]", "W": "float32[4, 3, 3, 3]"},
        "constants": {},
        "mode": "forward",
    }
    texts = [CONV, f"{CONV},mode=gradient", f"{CONV},dtype=float64", f"{CONV},B=4", CONV.replace("pads", "strides")]
    texts[-1] = texts[-1].replace("[1,1,1,1]", "[1,1]")
    assert len({content_hash(dict(open_workload(text).identity)) for text in texts}) == len(texts)
    assert open_workload("op:Clip,input=3,max=6.0").identity["constants"] == {"max": 6.0}
    assert open_workload(f"{CONV},seed=1").identity == identity


def test_seed_changes_the_data() -> None:
    assert open_workload(CONV).data_hash == open_workload(CONV).data_hash != open_workload(f"{CONV},seed=1").data_hash
    assert open_workload(CONV).initialisation_hash is None


def test_work_of_forward_and_gradient() -> None:
    forward, gradient = open_workload(CONV).work, open_workload(f"{CONV},mode=gradient").work
    x, w, y = 4 * 3 * 64, 4 * 4 * 27, 4 * 4 * 64

    assert (forward.flops, gradient.flops) == (2 * 4 * 64 * 27, 3 * 2 * 4 * 64 * 27)
    assert forward.bytes == x + w + y
    assert gradient.bytes == 2 * (x + w) + y
    assert (forward.items, forward.dtype) == (None, "float32")
    assert open_workload("op:Clip,input=3,max=6.0").work.bytes == 4 * (3 + 1 + 3)


def test_operator_without_a_rule_has_no_flops(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from deep500.networks.flop_rules import flop_rules

    def unknown(node: Any) -> Any:
        raise UnsupportedOperatorError("no rule")

    monkeypatch.setattr(flop_rules, "find", unknown)

    assert open_workload(CONV).work.flops is None
    assert open_workload(f"{CONV},mode=gradient").work.flops is None


@pytest.mark.parametrize(
    ("text", "positive"),
    [
        ("op:Relu,X=100", False),
        ("op:Log,input=100", True),
        ("op:Sqrt,X=100,mode=gradient", True),
        ("op:Pow,X=100,Y=100", True),
        ("op:BatchNormalization,X=2x3x4,scale=3,B=3,input_mean=3,input_var=3", True),
        ("op:BatchNormalization,X=2x3x4,scale=3,B=3,input_mean=3,input_var=3,training_mode=1", False),
    ],
)
def test_values_are_such_that_the_result_is_finite(text: str, positive: bool) -> None:
    workload = opened(text)

    smallest = min(float(np.min(value)) for value in workload._values.values())
    assert (smallest >= 0.5) == positive
    assert all(np.isfinite(result).all() for result in workload._expected)
    assert workload.scores()[0].value == 0.0


def test_labels_are_from_all_classes() -> None:
    workload = opened("op:SoftmaxCrossEntropyLoss,scores=200x4,labels=200:int64")

    assert set(workload._values["labels"]) == {0, 1, 2, 3}


def test_training_mode_is_that_of_the_network() -> None:
    text = "op:BatchNormalization,X=20x3,scale=3,B=3,input_mean=3,input_var=3,training_mode=1"
    workload = opened(text)

    (result,) = workload._expected
    scale, shift = workload._values["scale"], workload._values["B"]
    np.testing.assert_allclose(((result - shift) / scale).mean(axis=0), np.zeros(3), atol=1e-5)
    assert workload.identity["attributes"] == {"training_mode": 1}


@pytest.mark.parametrize("mode", ["forward", "gradient"])
def test_framework_that_computes_something_else_is_seen(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    workload = opened(f"{CONV},mode={mode}")
    assert workload.scores()[0].value == 0.0

    workload._expected = [*workload._expected[:-1], 2 * workload._expected[-1]]

    assert 0.01 < workload.scores()[0].value < 1


def test_gradients_are_part_of_the_score() -> None:
    forward, gradient = opened(CONV), opened(f"{CONV},mode=gradient")

    assert [result.shape for result in forward._expected] == [(1, 4, 8, 8)]
    assert [result.shape for result in gradient._expected] == [(1, 4, 8, 8), (1, 3, 8, 8), (4, 3, 3, 3)]


def test_operator_that_the_reference_lacks_leaves_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")

    def lacks(network: Any) -> Any:
        raise UnsupportedOperatorError("no such operator")

    monkeypatch.setattr(module, "reference_executor", lacks)
    workload = opened(f"{CONV}@pytorch")

    assert workload.scores() == []
    assert plain(workload)["scores"] == {}


#: For each operator of the library, a call of it.
CALLS = {
    "affine_grid": "theta=1x2x3,size=[1,1,2,3]",
    "average_pool": "X=1x2x4x4,kernel_shape=[2,2]",
    "batch_normalization": "X=2x3x4,scale=3,B=3,input_mean=3,input_var=3",
    "cast": "input=4,to=float64",
    "celu": "X=2x3:float32",
    "clip": "input=4,min=-0.5,max=0.5",
    "col2im": "input=1x4x4,image_shape=[3,3],block_shape=[2,2]",
    "compress": "input=3x2,condition=3:bool,axis=0",
    "concat": "inputs=[2x3,2x3],axis=0",
    "conv": "X=1x2x4x4,W=3x2x3x3",
    "conv_transpose": "X=1x2x4x4,W=2x3x3x3",
    "cum_prod": "x=2x3,axis=1",
    "cum_sum": "x=2x3,axis=1",
    "deform_conv": "X=1x2x4x4,W=3x2x3x3,offset=1x18x2x2",
    "depth_to_space": "input=1x4x2x2,blocksize=2",
    "det": "X=2x3x3",
    "dft": "input=2x4x1,axis=1",
    "dropout": "data=2x3",
    "einsum": "Inputs=[2x3],equation=ij->ji",
    "expand": "input=3x1,shape=[2,3,4]",
    "gather": "data=5x3,indices=4:int64",
    "gather_elements": "data=2x3,indices=2x2:int64,axis=1",
    "gather_nd": "data=4x3,indices=2x1:int64",
    "gemm": "A=2x3,B=3x4,C=4",
    "global_average_pool": "X=1x2x4x4",
    "global_lp_pool": "X=1x2x4x4",
    "global_max_pool": "X=1x2x4x4",
    "grid_sample": "X=1x2x4x4,grid=1x3x2x2",
    "gru": "X=3x2x4,W=1x15x4,R=1x15x5,hidden_size=5",
    "instance_normalization": "input=2x3x4,scale=3,B=3",
    "lp_pool": "X=1x2x4x4,kernel_shape=[2,2]",
    "lrn": "X=1x4x2x2,size=3",
    "lstm": "X=3x2x4,W=1x20x4,R=1x20x5,hidden_size=5",
    "mat_mul": "A=2x3,B=3x4",
    "max": "data_0=[2x3,2x3]",
    "max_pool": "X=1x2x4x4,kernel_shape=[2,2]",
    "max_roi_pool": "X=2x1x4x4,rois=[[0.0,0,0,2,2],[1.0,1,1,3,3]],pooled_shape=[2,2]",
    "max_unpool": "X=1x1x2x2,I=1x1x2x2:int64,kernel_shape=[2,2],strides=[2,2]",
    "mean": "data_0=[2x3,2x3]",
    "min": "data_0=[2x3,2x3]",
    "one_hot": "indices=4:int64,depth=3.0,values=[0.0,1.0]",
    "pad": "data=2x3,pads=[0,1,0,1]",
    "reduce_l1": "data=2x3,axes=1",
    "reduce_l2": "data=2x3,axes=1",
    "reduce_log_sum": "data=2x3,axes=1",
    "reduce_log_sum_exp": "data=2x3,axes=1",
    "reduce_max": "data=2x3,axes=1",
    "reduce_mean": "data=2x3,axes=1",
    "reduce_min": "data=2x3,axes=1",
    "reduce_prod": "data=2x3,axes=1",
    "reduce_sum": "data=2x3,axes=[0,1]",
    "reduce_sum_square": "data=2x3,axes=1",
    "reshape": "data=2x3,shape=[3,2]",
    "resize": "X=1x1x2x2,scales=[1.0,1.0,2.0,2.0]",
    "reverse_sequence": "input=4x2,sequence_lens=[2,3]",
    "rnn": "X=3x2x4,W=1x5x4,R=1x5x5,hidden_size=5",
    "roi_align": "X=2x1x4x4,rois=3x4,batch_indices=3:int64",
    "scatter_elements": "data=3x3,indices=2x3:int64,updates=2x3",
    "scatter_nd": "data=3x2,indices=2x1:int64,updates=2x2",
    "slice": "data=4x3,starts=1,ends=3",
    "softmax_cross_entropy_loss": "scores=4x3,labels=4:int64",
    "space_to_depth": "input=1x1x4x4,blocksize=2",
    "split": "input=4x3,num_outputs=1",
    "squeeze": "data=1x3,axes=0",
    "stft": "signal=1x16x1,frame_step=4,frame_length=8,onesided=1",
    "sum": "data_0=[2x3,2x3]",
    "tensor_scatter": "past_cache=1x4x3,update=1x2x3,write_indices=1",
    "tile": "input=2x3,repeats=[2,1]",
    "top_k": "X=2x4,K=2",
    "transpose": "data=2x3",
    "trilu": "input=3x3,k=1",
    "unsqueeze": "data=3,axes=0",
    "where": "condition=2x3:bool,X=2x3,Y=2x3",
}
#: Their outputs have open sizes, or no floating input.
FORWARD_ONLY = ("compress", "one_hot")
LIBRARY = Registry("operator", "deep500.operators.library")


@pytest.mark.parametrize("name", [name for name in LIBRARY.names() if name != "constant"])
def test_every_operator_of_the_library_can_be_measured(name: str) -> None:
    """An operator that is not in ``CALLS`` has one or two inputs of one shape."""
    operator = LIBRARY.get(name).__name__
    inputs = [parameter.name for parameter in onnx.defs.get_schema(operator, "").inputs]
    arguments = CALLS.get(name) or ",".join(f"{parameter}=2x3" for parameter in inputs)
    for mode in ("forward", "gradient") if name not in FORWARD_ONLY else ("forward",):
        workload = opened(f"op:{operator},{arguments},mode={mode},dtype=float64")
        assert workload.work.flops is not None
        assert plain(workload)["scores"] == {"L2 relative error to the reference": 0.0}


@pytest.mark.parametrize("name", FORWARD_ONLY)
def test_gradient_that_cannot_be_measured_is_refused(name: str) -> None:
    assert "asks for a gradient" in refusal(f"op:{LIBRARY.get(name).__name__},{CALLS[name]},mode=gradient")


def test_operator_that_the_framework_lacks_is_told_by_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(lowerings._table, ("", "Sign"), raising=False)
    workload = open_workload("op:Sign,input=3")

    with pytest.raises(UnsupportedOperatorError, match="has no lowering for node 'Sign'"):
        workload.run()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op:Conv,X=1x3x8x8,W=4x4x3x3", "accepted is X.shape[1] equal to W.shape[1] * group"),
        ("op:Relu,X=999999999999x9999", "do not fit into memory"),
        ("op:Relu,X=2:complex64", "ONNX refuses Relu of X: complex64[2]"),
        ("op:Reshape,data=2x6,shape=[5,5]", "Reshape"),
        ("op:Relu,X=3@torch", "no framework named 'torch'. Did you mean 'pytorch'?"),
        ("op:Relu,X=3@reference:gpu", "gpu"),
    ],
)
def test_what_cannot_be_computed_is_refused(text: str, message: str) -> None:
    assert message in refusal(text)
