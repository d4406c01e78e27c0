from .loading import Checkpoint, check_identity, checkpoint_folders, load_checkpoint, load_latest
from .writer import CheckpointWriter

__all__ = [
    "Checkpoint",
    "CheckpointWriter",
    "check_identity",
    "checkpoint_folders",
    "load_checkpoint",
    "load_latest",
]
