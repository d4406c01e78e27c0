"""Images."""

from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Draw, GradientCase, from_library, strategy
from tests.conformance.onnx_gradients.values import flags, int64, normal, seeds, sizes

for operator, file in (("Resize", "resize"), ("GridSample", "grid_sample"), ("RoiAlign", "roi_align")):
    strategy(operator)(from_library(operator, file))


@strategy("AffineGrid")
@st.composite
def affine_grid(draw: Draw) -> GradientCase:
    """Grids of images and of volumes."""
    rng, batch, rank = draw(seeds), draw(sizes), draw(st.integers(2, 3))
    size = int64([batch, draw(sizes), *(draw(st.integers(2, 3)) for _ in range(rank))])
    return GradientCase("AffineGrid", [normal(rng, (batch, rank, rank + 1)), size], {"align_corners": draw(flags)})
