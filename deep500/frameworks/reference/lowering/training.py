"""Steps of optimizers as operators, ONNX' domain ``ai.onnx.preview.training``."""

from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

_DOMAIN = "ai.onnx.preview.training"

for _op_type in ("Adagrad", "Adam", "Momentum"):
    take_onnx(_op_type, domain=_DOMAIN, has_gradient=True)
