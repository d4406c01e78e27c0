from .executor_tests import test_executor_backprop, test_executor_inference
from .ladder import validate
from .report import NodeComparison, TensorComparison, ValidationReport

__all__ = [
    "NodeComparison",
    "TensorComparison",
    "ValidationReport",
    "test_executor_backprop",
    "test_executor_inference",
    "validate",
]
