"""From the ``@FRAMEWORK[:DEVICE]`` of a workload to an executor, and what is told of it."""

from __future__ import annotations

from typing import Any

from deep500.core.requirement import Requirement
from deep500.frameworks import FRAMEWORKS
from deep500.measure.environment.probe import UNAVAILABLE, read_section
from deep500.measure.environment.system import System
from deep500.measure.sampling.plan import THREAD_VARIABLES
from deep500.measure.workload import Scalar, WorkloadSpec
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.recipe.resolve import find_executor

__all__ = ["REFERENCE", "framework_factors", "open_executor", "reference_executor", "setting_factors"]

#: The framework that runs a workload which names none, and that the results of all others are held against.
REFERENCE = "reference"


def open_executor(spec: WorkloadSpec, network: Network) -> GraphExecutor:
    """Return an executor of the framework and device that a workload's text names; the NumPy reference without one.

    Raises:
        Deep500Error: There is no such framework or device, or it cannot run the network.
    """
    executor: GraphExecutor = find_executor(spec.framework or REFERENCE)(network, device=spec.device)
    return executor


def reference_executor(network: Network) -> GraphExecutor:
    """Return an executor of the NumPy reference."""
    executor: GraphExecutor = find_executor(REFERENCE)(network)
    return executor


def framework_factors(framework: str, device: object) -> dict[str, Scalar]:
    """Return who computes: framework, its version, device, and the settings of both.

    Args:
        framework: The framework's name; its adapter is loaded.
        device: Where it runs.
    """
    adapter = FRAMEWORKS.get(framework) if framework in FRAMEWORKS else None
    version, module = UNAVAILABLE, None
    if isinstance(requirement := getattr(adapter, "REQUIREMENT", None), Requirement):
        version, module = requirement.version(), requirement.module
    return {
        "framework": framework,
        "framework_version": version,
        "device": str(device),
        **setting_factors(module),
    }


def setting_factors(module: str | None = None) -> dict[str, Scalar]:
    """Return the settings that change times or bits: thread and determinism variables that are set, and switches.

    Args:
        module: The framework's module, whose own switches of determinism and precision are told as one text.
    """
    system = System()
    factors: dict[str, Scalar] = dict(system.variables(THREAD_VARIABLES))
    switches = read_section("determinism", system).values
    variables = switches.get("variables")
    if isinstance(variables, dict):
        factors.update({str(name): str(value) for name, value in variables.items()})
    own: Any = switches.get(module) if module else None
    if isinstance(own, dict):
        factors["framework_switches"] = ", ".join(f"{name}={own[name]}" for name in sorted(own))
    return factors
