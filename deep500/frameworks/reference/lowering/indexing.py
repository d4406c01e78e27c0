"""Elements at places that are computed, and the places of elements."""

from deep500.frameworks.reference.lowering._library import take
from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

take("Gather", "gather", since=1)
take("GatherElements", "gather_elements", since=11)
take("GatherND", "gather_nd", since=12)
take("ScatterElements", "scatter_elements", since=16)
take("ScatterND", "scatter_nd", since=16)
take("TensorScatter", "tensor_scatter", since=24)
take("TopK", "top_k", since=11)
take("OneHot", "one_hot", since=11)
take("Compress", "compress", since=9)

take_onnx("NonZero", since=9)
take_onnx("Unique", since=11, has_gradient=True)
