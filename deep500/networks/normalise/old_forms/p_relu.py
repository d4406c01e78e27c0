"""PRelu before opset 7, which had a slope for each channel instead of slopes that broadcast."""

from __future__ import annotations

import numpy as np

from deep500.networks.normalise.old_form import OldForm, OldNode

__all__ = ["P_RELU"]


def _align(old: OldNode) -> None:
    """Let slopes of shape ``[C]`` stand where broadcasting takes them for channels.

    Source: ONNX PRelu-6 ("slope"), PRelu-7.
    """
    x, slope = old.given(0), old.given(1)
    rank = old.rank(x)
    if rank > 2 and old.rank(slope) == 1:
        slope = old.add("Unsqueeze", [slope, old.store(np.arange(1, rank - 1))])
    old.finish("PRelu", [x, slope])


P_RELU = (OldForm("PRelu", (1, 6), _align),)
