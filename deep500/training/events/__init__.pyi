from .batch_hash import BatchHashEvent
from .checkpoint import CheckpointEvent
from .csv_log import CSVLogEvent
from .curves import CurvesEvent
from .early_stopping import EarlyStoppingEvent
from .jsonl_log import JSONLLogEvent
from .mlflow import MLflowEvent
from .nan_guard import NaNGuardEvent
from .progress_bar import TerminalBarEvent
from .schedule import ScheduleEvent
from .step_time_boxes import StepTimeBoxesEvent
from .target_accuracy import TargetAccuracyEvent
from .tensorboard import TensorBoardEvent
from .time_limit import TimeLimitEvent
from .wandb import WandbEvent
from .wrong_predictions import WrongPredictionsEvent

__all__ = [
    "BatchHashEvent",
    "CSVLogEvent",
    "CheckpointEvent",
    "CurvesEvent",
    "EarlyStoppingEvent",
    "JSONLLogEvent",
    "MLflowEvent",
    "NaNGuardEvent",
    "ScheduleEvent",
    "StepTimeBoxesEvent",
    "TargetAccuracyEvent",
    "TensorBoardEvent",
    "TerminalBarEvent",
    "TimeLimitEvent",
    "WandbEvent",
    "WrongPredictionsEvent",
]
