"""Old forms of operators mean what they meant: each small model runs in ONNX Runtime as it is, and here normalised."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto

from deep500.core.errors import InvalidNetworkError
from deep500.frameworks import FRAMEWORKS, installed_frameworks
from deep500.networks.network import Network

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@dataclass
class Old:
    """One node in the form of some opsets."""

    op_type: str
    opsets: tuple[int, int]
    inputs: list[np.ndarray]
    attributes: dict[str, Any] = field(default_factory=dict)
    stored: dict[int, np.ndarray] = field(default_factory=dict)
    outputs: int = 1
    rtol: float = 1e-5
    open_sizes: bool = False

    def __str__(self) -> str:
        attributes = ",".join(f"{k}={v}" for k, v in self.attributes.items())
        shapes = ",".join(str(list(x.shape)) for x in self.inputs)
        return f"{self.op_type}-{self.opsets[0]}..{self.opsets[1]}({shapes}){attributes}"

    def model(self, opset: int, results: Sequence[np.ndarray] = ()) -> onnx.ModelProto:
        names, values, tensors = [], iter(range(len(self.inputs))), []
        for index in range(len(self.inputs) + len(self.stored)):
            if index in self.stored:
                names.append(f"c{index}" if self.stored[index] is not None else "")
                if self.stored[index] is not None:
                    tensors.append(onnx.numpy_helper.from_array(np.asarray(self.stored[index]), f"c{index}"))
            else:
                names.append(f"x{next(values)}")
        outputs = [f"y{index}" for index in range(self.outputs)]
        node = oh.make_node(self.op_type, names, outputs, name="node", **self.attributes)
        inputs = [
            oh.make_tensor_value_info(
                f"x{i}",
                oh.np_dtype_to_tensor_dtype(x.dtype),
                [None] * x.ndim if self.open_sizes else x.shape,
            )
            for i, x in enumerate(self.inputs)
        ]
        infos = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = oh.make_graph([node], "old", inputs, infos, tensors)
        model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=8)
        for info, value in zip(model.graph.output, results):
            kind = oh.np_dtype_to_tensor_dtype(value.dtype)
            info.CopyFrom(oh.make_tensor_value_info(info.name, kind, [None] * value.ndim))
        return model


X = floats(2, 3, 4, 5)
IMAGE = floats(1, 2, 3, 4)
STATISTICS = [floats(3), floats(3), floats(3), np.abs(floats(3)) + 0.5]
I64 = np.int64


def cases() -> Iterator[Old]:
    yield from _softmax()
    yield from _normalisation()
    yield from _attributes_that_became_inputs()
    yield from _reductions()
    yield from _images()
    yield from _others()


def _softmax() -> Iterator[Old]:
    for op_type in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in (0, 1, 2, 3):
            yield Old(op_type, (7, 22), [X], {"axis": axis})
        yield Old(op_type, (7, 22), [X])
        yield Old(op_type, (11, 22), [X], {"axis": -2})
        yield Old(op_type, (7, 22), [X], {"axis": 1}, open_sizes=True)
        yield Old(op_type, (7, 22), [floats(3, 4)])
        yield Old(op_type, (7, 22), [floats(4)], {"axis": 0})


def _normalisation() -> Iterator[Old]:
    s = dict(enumerate(STATISTICS, 1))
    yield Old("BatchNormalization", (7, 22), [X], {"epsilon": 1e-3}, s)
    yield Old("BatchNormalization", (7, 22), [X], {"momentum": 0.5}, s)
    yield Old("BatchNormalization", (7, 22), [floats(2, 3)], {}, s)
    spatial = {i: (np.abs(floats(3, 4, 5)) + 0.5) for i in range(1, 5)}
    yield Old("BatchNormalization", (7, 8), [X], {"spatial": 0}, spatial)
    yield Old("BatchNormalization", (7, 8), [X], {"spatial": 1}, s)
    yield Old("InstanceNormalization", (7, 22), [X], {}, {1: STATISTICS[0], 2: STATISTICS[1]})
    yield Old("LRN", (7, 22), [X], {"size": 3})
    yield Old("LpNormalization", (7, 22), [X], {"axis": 1, "p": 1})
    yield Old("MeanVarianceNormalization", (9, 22), [X], {})
    yield Old("MeanVarianceNormalization", (9, 22), [X], {"axes": [1, 2]})
    yield Old("GroupNormalization", (21, 22), [floats(2, 4, 3)], {"num_groups": 2}, {1: floats(4), 2: floats(4)})
    yield Old("LayerNormalization", (17, 22), [X], {"axis": 2}, {1: floats(4, 5), 2: floats(4, 5)})
    yield Old("Dropout", (7, 11), [X], {"ratio": 0.4})
    yield Old("Dropout", (12, 22), [X], {}, {1: np.float32(0.4)})
    yield Old("Dropout", (12, 22), [X], {}, outputs=2)


def _attributes_that_became_inputs() -> Iterator[Old]:
    yield Old("Clip", (7, 10), [X], {"min": -0.5, "max": 0.5})
    yield Old("Clip", (7, 10), [X], {"max": 0.5})
    yield Old("Clip", (7, 10), [X], {"min": 0.5})
    yield Old("Clip", (7, 10), [X])
    yield Old("Clip", (11, 22), [X], {}, {1: np.float32(-0.5), 2: np.float32(0.5)})
    yield Old("Clip", (11, 22), [X], {}, {1: None, 2: np.float32(0.5)})
    for mode in ("constant", "reflect", "edge"):
        yield Old("Pad", (7, 10), [IMAGE], {"pads": [0, 0, 1, 2, 0, 0, 2, 1], "mode": mode})
        yield Old("Pad", (11, 22), [IMAGE], {"mode": mode}, {1: np.array([0, 0, 1, 2, 0, 0, 2, 1])})
    yield Old("Pad", (7, 10), [IMAGE], {"pads": [0, 0, 1, -1, 0, 0, 0, 1], "value": 2.5})
    yield Old("Pad", (11, 22), [IMAGE], {}, {1: np.array([0, 0, 1, -1, 0, 0, 0, 1]), 2: np.float32(2.5)})
    yield Old("Slice", (7, 9), [X], {"starts": [1, -2], "ends": [4, 10000], "axes": [1, 2]})
    yield Old("Slice", (7, 9), [X], {"starts": [1, 0], "ends": [2, -1]})
    yield Old("Slice", (7, 9), [X], {"starts": [-1], "ends": [2**31 - 1], "axes": [3]})
    yield Old("Slice", (10, 22), [X], {}, {1: np.array([1, -2]), 2: np.array([4, 10000]), 3: np.array([1, 2])})
    yield Old("Slice", (10, 22), [X], {}, {1: np.array([-1]), 2: np.array([-10]), 3: np.array([1]), 4: np.array([-2])})
    yield Old("TopK", (7, 9), [X], {"k": 2, "axis": 2}, outputs=2)
    yield Old("TopK", (10, 10), [X], {"axis": 2}, {1: np.array([2])}, outputs=2)
    yield Old("TopK", (11, 22), [X], {"axis": 2, "largest": 0}, {1: np.array([2])}, outputs=2)
    squeezable = floats(1, 3, 1, 2)
    yield Old("Squeeze", (7, 12), [squeezable], {"axes": [0, 2]})
    yield Old("Squeeze", (7, 12), [squeezable])
    yield Old("Squeeze", (13, 22), [squeezable], {}, {1: np.array([0, 2])})
    yield Old("Unsqueeze", (7, 12), [X], {"axes": [0, 3]})
    yield Old("Unsqueeze", (11, 12), [X], {"axes": [-1]})
    yield Old("Unsqueeze", (13, 22), [X], {}, {1: np.array([0, 3])})
    yield Old("Split", (7, 12), [X], {"axis": 3, "split": [2, 3]}, outputs=2)
    yield Old("Split", (7, 12), [X], {"axis": 2}, outputs=2)
    yield Old("Split", (7, 12), [X], outputs=2)
    yield Old("Split", (13, 17), [X], {"axis": 3}, {1: np.array([2, 3])}, outputs=2)
    yield Old("Split", (13, 17), [X], {"axis": 2}, outputs=2)
    yield Old("Split", (18, 22), [X], {"axis": 3, "num_outputs": 2}, outputs=2)
    yield Old("Reshape", (7, 22), [X], {}, {1: np.array([0, -1, 5])})
    yield Old("OneHot", (9, 22), [np.array([0, 2, -1])], {}, {1: np.array([3]), 2: np.float32([0, 1])})
    yield Old("ConstantOfShape", (9, 22), [], {}, {0: np.array([2, 3])})
    yield Old("Upsample", (7, 8), [IMAGE], {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "nearest"})
    yield Old("Upsample", (7, 8), [IMAGE], {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"})
    for mode, scales in itertools.product(("nearest", "linear"), ([1, 1, 2, 3], [1, 1, 1.5, 1.3], [1, 1, 2.6, 1])):
        yield Old("Upsample", (9, 9), [IMAGE], {"mode": mode}, {1: np.float32(scales)})
    for mode, scales in itertools.product(("nearest", "linear"), ([1, 1, 2, 3], [1, 1, 0.6, 1.3], [1, 1, 2.6, 0.5])):
        yield Old("Resize", (10, 10), [IMAGE], {"mode": mode}, {1: np.float32(scales)})
        resized = {1: np.zeros(0, np.float32), 2: np.float32(scales)}
        whole = ("align_corners", "pytorch_half_pixel") if scales[2] == 2 else ()
        for how in ("half_pixel", "asymmetric", *whole):  # ONNX Runtime rounds the sizes where the others do not
            yield Old("Resize", (11, 22), [IMAGE], {"mode": mode, "coordinate_transformation_mode": how}, resized)
    sizes = {1: np.zeros(0, np.float32), 2: np.zeros(0, np.float32), 3: np.array([1, 2, 5, 7])}
    yield Old("Resize", (11, 22), [IMAGE], {"mode": "cubic"}, sizes, rtol=1e-4)
    for rounding in ("floor", "round_prefer_floor"):
        settings = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": rounding}
        yield Old("Resize", (11, 12), [IMAGE], settings, sizes)


def _reductions() -> Iterator[Old]:
    names = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    for name in names:
        last = 12 if name == "Sum" else 17
        positive = np.abs(X) + 0.1
        yield Old(f"Reduce{name}", (7, last), [positive], {"axes": [1, 3], "keepdims": 0}, rtol=1e-4)
        yield Old(f"Reduce{name}", (7, last), [positive], {"axes": [2]}, rtol=1e-4)
        yield Old(f"Reduce{name}", (11, last), [positive], {"axes": [-1]}, rtol=1e-4)
        yield Old(f"Reduce{name}", (7, 22), [positive], {"keepdims": 0}, rtol=1e-4)
        yield Old(f"Reduce{name}", (last + 1, 22), [positive], {"keepdims": 0}, {1: np.array([1, -1])}, rtol=1e-4)
    for name in ("ArgMax", "ArgMin"):
        yield Old(name, (7, 22), [X], {"axis": 2, "keepdims": 0})
        yield Old(name, (12, 22), [np.round(X)], {"axis": 2, "select_last_index": 1})
    yield Old("CumSum", (11, 22), [X], {"exclusive": 1, "reverse": 1}, {1: np.array(2)})


def _images() -> Iterator[Old]:
    for opsets in ((7, 22),):
        yield Old("MaxPool", opsets, [X], {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [0, 1, 1, 0]})
        yield Old("AveragePool", opsets, [X], {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [0, 1, 1, 0]})
        yield Old("AveragePool", opsets, [X], {"kernel_shape": [2, 2], "count_include_pad": 1, "pads": [1, 1, 1, 1]})
        yield Old("AveragePool", opsets, [X], {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"})
        yield Old("GlobalAveragePool", opsets, [X])
        yield Old("LpPool", opsets, [X], {"kernel_shape": [2, 2], "p": 3})
        yield Old(
            "Conv", opsets, [X], {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, {1: floats(2, 3, 2, 2)}, rtol=1e-4
        )
        yield Old(
            "ConvTranspose",
            opsets,
            [X],
            {"strides": [2, 2], "output_padding": [1, 1]},
            {1: floats(3, 2, 3, 3)},
            rtol=1e-4,
        )
        yield Old(
            "ConvTranspose",
            opsets,
            [X],
            {"strides": [2, 2], "output_shape": [9, 10]},
            {1: floats(3, 2, 3, 3)},
            rtol=1e-4,
        )
    yield Old("MaxPool", (8, 22), [X], {"kernel_shape": [2, 2]}, outputs=2)
    yield Old("MaxPool", (10, 22), [X], {"kernel_shape": [2, 2], "ceil_mode": 1, "strides": [2, 2]})
    yield Old("MaxPool", (10, 22), [X], {"kernel_shape": [2, 2], "dilations": [2, 1]})
    yield Old("DepthToSpace", (7, 22), [floats(1, 8, 2, 3)], {"blocksize": 2})
    yield Old("DepthToSpace", (11, 22), [floats(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"})
    yield Old("SpaceToDepth", (7, 22), [floats(1, 2, 4, 6)], {"blocksize": 2})
    grid = np.clip(floats(1, 2, 3, 2), -1.2, 1.2)
    for mode in ("bilinear", "nearest"):  # the cubic ones differ in ONNX Runtime, at the border
        yield Old("GridSample", (16, 19), [IMAGE, grid], {"mode": mode, "padding_mode": "border"}, rtol=1e-4)
    for mode in ("linear", "nearest"):
        yield Old("GridSample", (20, 22), [IMAGE, grid], {"mode": mode, "padding_mode": "border"}, rtol=1e-4)
    rois, batches = np.float32([[0, 0, 2, 2], [1, 1, 3, 2]]), np.array([0, 0])
    for mode in ("avg", "max"):
        yield Old(
            "RoiAlign", (10, 22), [IMAGE, rois, batches], {"mode": mode, "output_height": 2, "output_width": 2},
            rtol=1e-4,
        )  # fmt: skip


def _others() -> Iterator[Old]:
    for op_type in ("Add", "Sub", "Mul", "Div", "Pow"):
        yield Old(op_type, (7, 22), [np.abs(X) + 0.5, np.abs(floats(3, 1, 5)) + 0.5], rtol=1e-4)
        yield Old(op_type, (7, 22), [np.abs(X) + 0.5, np.abs(floats(1)) + 0.5], rtol=1e-4)
    yield Old("Gemm", (7, 22), [floats(2, 3), floats(3, 4), floats(4)], {"alpha": 0.5, "beta": 2.0})
    yield Old("Gemm", (11, 22), [floats(2, 3), floats(4, 3)], {"transB": 1})
    yield Old("PRelu", (7, 22), [X, floats(3, 1, 1)])
    yield Old("PRelu", (7, 22), [X, floats(5)])
    yield Old("Flatten", (7, 22), [X], {"axis": 2})
    yield Old("Concat", (7, 22), [X, X], {"axis": 1})
    yield Old("Gather", (7, 22), [X, np.array([[0, 2]])], {"axis": 1})
    yield Old("Gather", (11, 22), [X, np.array([[0, -1]])], {"axis": 1})
    yield Old("Scatter", (9, 10), [floats(3, 3), np.array([[1, 0, 2]]), floats(1, 3)], {"axis": 0})
    yield Old("ScatterElements", (11, 22), [floats(3, 3), np.array([[1, 0, 2]]), floats(1, 3)], {"axis": 0})
    yield Old("ScatterND", (11, 22), [floats(3, 3), np.array([[1], [0]]), floats(2, 3)])
    yield Old("GatherND", (11, 22), [X, np.array([[1, 0], [0, 2]])])
    yield Old("Equal", (7, 22), [np.array([1, 2, 3]), np.array([1, 0, 3])])
    yield Old("Greater", (7, 22), [X, X[::-1].copy()])
    yield Old("Cast", (9, 22), [X], {"to": TensorProto.INT32})
    yield Old("Max", (8, 22), [X, floats(5)])
    yield Old("Sum", (8, 22), [X, floats(5), floats(1)])
    yield Old("Mean", (8, 22), [X, floats(5)])
    yield Old("Elu", (7, 22), [X], {"alpha": 0.3})
    yield Old("Selu", (7, 22), [X])
    yield Old("HardSigmoid", (7, 22), [X], {"alpha": 0.3})
    yield Old("ThresholdedRelu", (10, 22), [X], {"alpha": 0.3})
    yield Old("LeakyRelu", (7, 22), [X])
    yield Old("Shape", (7, 22), [X])
    yield Old("Expand", (8, 22), [floats(3, 1)], {}, {1: np.array([2, 1, 4])})
    yield Old("Tile", (7, 22), [floats(3, 1)], {}, {1: np.array([2, 3])})
    yield Old("NonZero", (9, 22), [np.round(X)])
    yield Old("Where", (9, 22), [X > 0, X, -X])
    yield Old("Identity", (7, 22), [X])
    yield Old("Transpose", (7, 22), [X], {"perm": [3, 1, 0, 2]})
    yield Old("Mod", (10, 22), [np.array([5, -5]), np.array([3, 3])])
    yield Old("QuantizeLinear", (10, 22), [floats(4)], {}, {1: np.float32(0.1), 2: np.uint8(3)})
    yield Old("DequantizeLinear", (10, 22), [np.uint8([1, 200])], {}, {1: np.float32(0.1), 2: np.uint8(3)})
    yield Old("ReverseSequence", (10, 22), [floats(4, 3), np.array([1, 4, 2])], {"batch_axis": 1, "time_axis": 0})
    yield Old("EyeLike", (9, 22), [floats(3, 4)], {"k": 1})
    yield Old("Erf", (9, 22), [X])
    yield Old("IsNaN", (9, 22), [np.float32([1, np.nan])])
    recurrent = [floats(3, 2, 4)]
    for op_type, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        weights = {1: floats(1, gates * 5, 4), 2: floats(1, gates * 5, 5), 3: floats(1, gates * 10)}
        yield Old(op_type, (7, 22), recurrent, {"hidden_size": 5}, weights, outputs=2, rtol=1e-4)
        both = {key: np.concatenate([value, -value]) for key, value in weights.items()}
        yield Old(op_type, (7, 22), recurrent, {"hidden_size": 5, "direction": "bidirectional"}, both, rtol=1e-4)
    yield Old("Det", (11, 22), [floats(2, 3, 3)], rtol=1e-4)
    yield Old("Round", (11, 22), [X])
    yield Old("Bernoulli", (15, 22), [np.float32([0, 1])])
    yield Old("DFT", (17, 19), [floats(1, 6, 1)], {"axis": 1}, rtol=1e-4)
    yield Old("DFT", (17, 19), [floats(1, 6, 1)], {}, rtol=1e-4)
    yield Old("DFT", (20, 22), [floats(1, 6, 1)], {}, {1: None, 2: np.array(1)}, rtol=1e-4)
    yield Old("NegativeLogLikelihoodLoss", (12, 22), [floats(2, 3), np.array([0, 2])])
    yield Old("SoftmaxCrossEntropyLoss", (12, 22), [floats(2, 3), np.array([0, 2])])
    yield Old("LogSoftmax", (7, 22), [floats(2, 1)])
    yield Old("Unique", (11, 22), [np.float32([2, 1, 2])], {}, outputs=2)
    yield Old("Trilu", (14, 22), [floats(3, 3)])
    yield Old("HardSwish", (14, 22), [X])
    yield Old("Einsum", (12, 22), [floats(2, 3), floats(3, 4)], {"equation": "ij,jk->ik"})
    yield Old("Celu", (12, 22), [X], {"alpha": 2.0})
    yield Old("NonMaxSuppression", (10, 22), [np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9]]]), np.float32([[[0.9, 0.8]]])],
              {}, {2: np.array([2]), 3: np.float32([0.5]), 4: np.float32([0])})  # fmt: skip


CASES = list(cases())


def test_unknown_points_are_refused() -> None:
    settings = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "ceil"}
    case = Old("Resize", (11, 12), [IMAGE], settings, {1: np.zeros(0, np.float32), 2: np.float32([1, 1, 2, 2])})
    with pytest.raises(InvalidNetworkError, match=r"Node 'node' \(ai\.onnx::Resize, opset 11\) has no newer form"):
        Network.load(case.model(11, [IMAGE]))


def breaks(case: Old) -> list[int]:
    """Return the opsets of a case in which the form of its operator, or of the converter's work, can be another."""
    schemas = {
        s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == case.op_type and not s.domain
    }
    first, last = case.opsets
    return sorted(
        {first, last, *(v for v in schemas if first <= v <= last), *(v - 1 for v in schemas if first < v <= last)}
    )


def runs(case: Old, opset: int) -> list[np.ndarray] | None:
    """Return what ONNX Runtime makes of the old model, ``None`` where it has no such operator."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = case.model(opset)
    try:
        session = ort.InferenceSession(model.SerializeToString(), options)
        found = session.run(None, {f"x{i}": x for i, x in enumerate(case.inputs)})
    except Exception:  # noqa: BLE001 - it reports what it lacks by exceptions of its own
        return None
    return [np.asarray(value) for value in found]


@pytest.mark.parametrize("framework", [name for name in ("reference", "pytorch") if name in installed_frameworks()])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_old_form_means_what_it_meant(case: Old, framework: str) -> None:
    compared = 0
    for opset in breaks(case):
        expected = runs(case, opset)
        if expected is None:
            continue
        compared += 1
        network = Network.load(case.model(opset, expected))
        executor = FRAMEWORKS.get(framework).from_model(network)
        outputs = executor.inference({f"x{i}": x for i, x in enumerate(case.inputs)})
        if case.op_type == "Bernoulli":
            continue
        for name, one, other in zip(outputs, map(executor.value_to_numpy, outputs.values()), expected):
            assert one.dtype == other.dtype, (opset, name)
            np.testing.assert_allclose(one, other, rtol=case.rtol, atol=1e-5, err_msg=f"{name}, opset {opset}")
    if not compared:
        pytest.skip("ONNX Runtime has this form of the operator in no opset")
