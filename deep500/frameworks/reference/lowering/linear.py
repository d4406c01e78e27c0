"""Products of matrices and tensors, and determinants."""

from deep500.frameworks.reference.lowering._library import take

__all__: list[str] = []

take("Gemm", "gemm", since=11)
take("MatMul", "mat_mul", since=1)
take("Einsum", "einsum", since=12)
take("Det", "det", since=11)
