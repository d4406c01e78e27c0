from .profile import profile
from .report import NetworkProfile, NodeProfile

__all__ = ["NetworkProfile", "NodeProfile", "profile"]
