"""BatchNormalization before opset 9, which could have statistics for each activation instead of each channel."""

from __future__ import annotations

from deep500.networks.normalise.old_form import OldForm, OldNode

__all__ = ["BATCH_NORMALIZATION"]


def _each_activation(old: OldNode) -> None:
    """``(x - mean) / sqrt(var + epsilon) * scale + bias``, all of shape ``[C, D1, ...]``, in inference.

    Source: ONNX BatchNormalization-7 (``spatial``).
    """
    if any(old.node.output[1:]):
        raise old.error("spatial=0 has one in inference only, without outputs of statistics")
    x, scale, bias, mean, var = old.node.input[:5]
    epsilon = old.add("CastLike", [old.add("Constant", [], value_float=old.attributes.get("epsilon", 1e-5)), x])
    deviation = old.add("Sqrt", [old.add("Add", [var, epsilon])])
    normalised = old.add("Div", [old.add("Sub", [x, mean]), deviation])
    old.finish("Add", [old.add("Mul", [normalised, scale]), bias])


def _applies(old: OldNode) -> bool:
    return bool(old.attributes.get("spatial", 1) == 0)


BATCH_NORMALIZATION = (OldForm("BatchNormalization", (1, 8), _each_activation, _applies),)
