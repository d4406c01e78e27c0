from .isolation import IsolationCheck, IsolationError, IsolationVerdict, check_isolation
from .noise import NoiseInterval, NoiseWitness, observe_noise, take_witness
from .probe import PROBES, UNAVAILABLE, Field, Section
from .record import EnvironmentRecord, environment_schema, record_environment
from .system import System, UnreadableError

__all__ = [
    "PROBES",
    "UNAVAILABLE",
    "EnvironmentRecord",
    "Field",
    "IsolationCheck",
    "IsolationError",
    "IsolationVerdict",
    "NoiseInterval",
    "NoiseWitness",
    "Section",
    "System",
    "UnreadableError",
    "check_isolation",
    "environment_schema",
    "observe_noise",
    "record_environment",
    "take_witness",
]
