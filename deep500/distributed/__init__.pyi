from .agreement import CommunicatorRanks
from .catalogue import COMMUNICATORS, SCHEMES
from .communication import CommunicationNetwork
from .communicator import ANY_SOURCE, Capabilities, Communicator, Work
from .communicators.local import LocalCommunicator, run_threads
from .communicators.simulated import SimulatedCommunicator, run_simulated
from .distributed_optimizer import DistributedOptimizer
from .flat_buffers import Bucket, FlatBuffer, FlatBuffers
from .launch_environment import LaunchEnvironment, create_communicator, detect
from .ledger import Ledger, LedgerSnapshot
from .metrics.communication_volume import CommunicationVolume
from .metrics.consensus_distance import ConsensusDistance
from .metrics.exposed_exchange import ExposedExchange
from .metrics.staleness import Staleness
from .samplers.distributed_sampler import DistributedSampler
from .samplers.partitioned_distributed_sampler import PartitionedDistributedSampler
from .scheme import Scheme, StepContext
from .simulation.delays import Disturbance
from .time_split import RankTimes, StepTimes, TimeSplit

__all__ = [
    "ANY_SOURCE",
    "COMMUNICATORS",
    "SCHEMES",
    "Bucket",
    "Capabilities",
    "CommunicationNetwork",
    "CommunicationVolume",
    "Communicator",
    "CommunicatorRanks",
    "ConsensusDistance",
    "DistributedOptimizer",
    "DistributedSampler",
    "Disturbance",
    "ExposedExchange",
    "FlatBuffer",
    "FlatBuffers",
    "LaunchEnvironment",
    "Ledger",
    "LedgerSnapshot",
    "LocalCommunicator",
    "PartitionedDistributedSampler",
    "RankTimes",
    "Scheme",
    "SimulatedCommunicator",
    "Staleness",
    "StepContext",
    "StepTimes",
    "TimeSplit",
    "Work",
    "create_communicator",
    "detect",
    "run_simulated",
    "run_threads",
]
