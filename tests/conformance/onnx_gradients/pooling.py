"""Pooling."""

import numpy as np

from deep500.operators.library.max_pool import MaxPool
from tests.conformance.onnx_gradients.cases import GradientCase, from_library, strategy


def _sizes_agree(case: GradientCase) -> bool:
    """Whether ONNX' shape inference gives the size that the specification's formula does."""
    return not (case.attributes.get("auto_pad") == "VALID" and case.attributes.get("ceil_mode"))


for operator, file in (
    ("AveragePool", "average_pool"), ("LpPool", "lp_pool"), ("GlobalMaxPool", "global_max_pool"),
    ("GlobalAveragePool", "global_average_pool"), ("GlobalLpPool", "global_lp_pool"), ("MaxUnpool", "max_unpool"),
    ("MaxRoiPool", "max_roi_pool"),
):  # fmt: skip
    strategy(operator)(from_library(operator, file).filter(_sizes_agree))


def _has_maxima(case: GradientCase) -> bool:
    """Whether no window lies wholly in the padding, where its maximum is minus infinity."""
    return bool(np.isfinite(MaxPool(**case.attributes).forward(case.inputs)[0]).all())


strategy("MaxPool")(
    from_library("MaxPool", "max_pool", differentiable_outputs=(0,)).filter(_sizes_agree).filter(_has_maxima)
)
