"""Images. Upsample is run as the Resize that it became."""

from deep500.frameworks.reference.lowering._library import take
from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

take("Resize", "resize", since=13)
take("GridSample", "grid_sample", since=20)
take("RoiAlign", "roi_align", since=16)
take("AffineGrid", "affine_grid", since=20)

take_onnx("NonMaxSuppression", since=11)
take_onnx("ImageDecoder", since=20)
