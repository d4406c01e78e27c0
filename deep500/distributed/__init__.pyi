from .catalogue import COMMUNICATORS, SCHEMES
from .communication import CommunicationNetwork
from .communicator import ANY_SOURCE, Capabilities, Communicator, Work
from .communicators.local import LocalCommunicator, run_threads
from .distributed_optimizer import DistributedOptimizer
from .flat_buffers import Bucket, FlatBuffer, FlatBuffers
from .launch_environment import LaunchEnvironment, create_communicator, detect
from .ledger import Ledger, LedgerSnapshot
from .samplers.distributed_sampler import DistributedSampler
from .samplers.partitioned_distributed_sampler import PartitionedDistributedSampler
from .scheme import Scheme, StepContext

__all__ = [
    "ANY_SOURCE",
    "COMMUNICATORS",
    "SCHEMES",
    "Bucket",
    "Capabilities",
    "CommunicationNetwork",
    "Communicator",
    "DistributedOptimizer",
    "DistributedSampler",
    "FlatBuffer",
    "FlatBuffers",
    "LaunchEnvironment",
    "Ledger",
    "LedgerSnapshot",
    "LocalCommunicator",
    "PartitionedDistributedSampler",
    "Scheme",
    "StepContext",
    "Work",
    "create_communicator",
    "detect",
    "run_threads",
]
