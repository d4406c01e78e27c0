from .comparison import Comparison
from .differences import numerical_gradient
from .equivalence import test_op_equivalence
from .forward import test_op_forward
from .gradient import test_op_gradient
from .report import (
    Derivative,
    EquivalenceReport,
    FailingCase,
    ForwardReport,
    GradientReport,
    InputGradient,
    OutputCheck,
)

__all__ = [
    "Comparison",
    "Derivative",
    "EquivalenceReport",
    "FailingCase",
    "ForwardReport",
    "GradientReport",
    "InputGradient",
    "OutputCheck",
    "numerical_gradient",
    "test_op_equivalence",
    "test_op_forward",
    "test_op_gradient",
]
