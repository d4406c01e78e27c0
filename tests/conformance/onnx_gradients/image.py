"""Images."""

from tests.conformance.onnx_gradients.cases import from_library, strategy

for operator, file in (
    ("Resize", "resize"), ("GridSample", "grid_sample"), ("RoiAlign", "roi_align"), ("AffineGrid", "affine_grid"),
):  # fmt: skip
    strategy(operator)(from_library(operator, file))
