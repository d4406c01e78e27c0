"""Pooling."""

from tests.conformance.onnx_gradients.cases import from_library, strategy

for operator, file in (
    ("MaxPool", "max_pool"), ("AveragePool", "average_pool"), ("LpPool", "lp_pool"),
    ("GlobalMaxPool", "global_max_pool"), ("GlobalAveragePool", "global_average_pool"),
    ("GlobalLpPool", "global_lp_pool"), ("MaxUnpool", "max_unpool"), ("MaxRoiPool", "max_roi_pool"),
):  # fmt: skip
    changes = {"differentiable_outputs": (0,)} if operator == "MaxPool" else {}
    strategy(operator)(from_library(operator, file, **changes))
