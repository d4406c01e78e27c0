"""Families of operators, and the colours by which pictures tell them apart."""

from __future__ import annotations

__all__ = ["FAMILIES", "family_of"]

#: The colour of each family, in the order of a legend.
FAMILIES = {
    "convolution": "#b7d3f2",
    "matrix product": "#9fc5e8",
    "attention, recurrence": "#c9b8ee",
    "pooling": "#b8e0d2",
    "normalisation": "#f7e3a1",
    "activation": "#f6c1b5",
    "arithmetic": "#fbe0d0",
    "reduction": "#e3d5b8",
    "shape, indexing": "#e2e5e9",
    "quantisation, types": "#d7e8b5",
    "control flow, lists": "#f3c6e2",
    "loss": "#f2a4a4",
    "other": "#d0d4f5",
}

_MEMBERS = {
    "convolution": "Conv ConvTranspose DeformConv CausalConvWithState Col2Im ConvInteger QLinearConv",
    "matrix product": "Gemm MatMul Einsum Det MatMulInteger QLinearMatMul LinearClassifier LinearRegressor",
    "attention, recurrence": "Attention FlexAttention LinearAttention RotaryEmbedding RNN GRU LSTM",
    "pooling": (
        "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxRoiPool MaxUnpool RoiAlign"
    ),
    "normalisation": (
        "BatchNormalization GroupNormalization InstanceNormalization LayerNormalization LRN Dropout "
        "LpNormalization MeanVarianceNormalization RMSNormalization"
    ),
    "activation": (
        "Celu Elu Gelu HardSigmoid HardSwish Hardmax LeakyRelu LogSoftmax Mish PRelu Relu Selu Shrink Sigmoid "
        "Softmax Softplus Softsign SwiGLU Swish Tanh ThresholdedRelu Clip"
    ),
    "arithmetic": (
        "Abs Add And Acos Acosh Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor "
        "Ceil Cos Cosh Div Equal Erf Exp Floor Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Log Max "
        "Mean Min Mod Mul Neg Not Or Pow Reciprocal Round Sign Sin Sinh Sqrt Sub Sum Tan Where Xor"
    ),
    "reduction": (
        "ArgMax ArgMin CumProd CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
        "ReduceMin ReduceProd ReduceSum ReduceSumSquare TopK"
    ),
    "shape, indexing": (
        "CenterCropPad Compress Concat Constant ConstantOfShape DepthToSpace Expand EyeLike Flatten Gather "
        "GatherElements GatherND Identity NonZero OneHot Pad Range Reshape Resize ReverseSequence Scatter "
        "ScatterElements ScatterND Shape Size Slice SpaceToDepth Split Squeeze TensorScatter Tile Transpose "
        "Trilu Unique Unsqueeze Upsample"
    ),
    "quantisation, types": "BitCast Cast CastLike DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "control flow, lists": (
        "If Loop Scan ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt "
        "SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap "
        "SplitToSequence"
    ),
    "loss": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
}

_FAMILY = {operator: family for family, operators in _MEMBERS.items() for operator in operators.split()}


def family_of(op_type: str, domain: str = "") -> str:
    """Return the family of an operator, a key of :data:`FAMILIES`."""
    return "other" if domain not in ("", "ai.onnx.ml", "ai.onnx.preview") else _FAMILY.get(op_type, "other")
