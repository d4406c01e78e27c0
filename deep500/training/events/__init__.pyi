from .batch_hash import BatchHashEvent
from .progress_bar import TerminalBarEvent

__all__ = ["BatchHashEvent", "TerminalBarEvent"]
