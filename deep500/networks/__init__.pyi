from .creation import MODELS, create_model
from .custom_node import call_custom_op
from .executor_event import ExecutorEvent
from .graph_executor import GraphExecutor
from .loss import LOSSES, Loss
from .network import Network

__all__ = ["LOSSES", "MODELS", "ExecutorEvent", "GraphExecutor", "Loss", "Network", "call_custom_op", "create_model"]
