"""What no other file of this package lists yet."""

from __future__ import annotations

from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

for _domain in ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"):
    take_onnx("*", domain=_domain, has_gradient=True)
