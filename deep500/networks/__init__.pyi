from .creation import MODELS, create_model
from .executor_event import ExecutorEvent
from .graph_executor import GraphExecutor
from .loss import LOSSES, Loss
from .network import Network

__all__ = ["LOSSES", "MODELS", "ExecutorEvent", "GraphExecutor", "Loss", "Network", "create_model"]
