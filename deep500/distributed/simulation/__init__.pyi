from .calibration import Calibration, PiecewiseAlphaBeta, Segment, calibrate, fit_pieces
from .catalogue import ALGORITHMS
from .clocks import Clocks
from .closed_forms import closed_form
from .cost_model import CostModel, LogGP
from .delays import Disturbance
from .execution import execute
from .measuring import measure_messages, measure_reduction_s_per_byte
from .picture import MeasuredEfficiency, draw_scaling
from .schedule import Action, Phase, Round, Schedule
from .training_step import ScalingPoint, SimulatedRun, TrainingStep, predict, simulate
from .volumes import sparse_allgather_bytes, total_sent_bytes

__all__ = [
    "ALGORITHMS",
    "Action",
    "Calibration",
    "Clocks",
    "CostModel",
    "Disturbance",
    "LogGP",
    "MeasuredEfficiency",
    "Phase",
    "PiecewiseAlphaBeta",
    "Round",
    "ScalingPoint",
    "Schedule",
    "Segment",
    "SimulatedRun",
    "TrainingStep",
    "calibrate",
    "closed_form",
    "draw_scaling",
    "execute",
    "fit_pieces",
    "measure_messages",
    "measure_reduction_s_per_byte",
    "predict",
    "simulate",
    "sparse_allgather_bytes",
    "total_sent_bytes",
]
