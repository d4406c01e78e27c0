from .constant import ConstantSchedule
from .cosine import CosineSchedule
from .exponential import ExponentialSchedule
from .one_cycle import OneCycleSchedule
from .polynomial import PolynomialSchedule
from .step_list import StepListSchedule
from .warm_up import WarmUpSchedule

__all__ = [
    "ConstantSchedule",
    "CosineSchedule",
    "ExponentialSchedule",
    "OneCycleSchedule",
    "PolynomialSchedule",
    "StepListSchedule",
    "WarmUpSchedule",
]
