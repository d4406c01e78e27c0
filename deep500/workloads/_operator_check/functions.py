"""Functions of frameworks that compute what an operator computes, to compare it with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import Deep500Error, OperatorError
from deep500.core.requirement import Requirement
from deep500.core.texts import shown
from deep500.frameworks import FRAMEWORKS
from deep500.operators.custom import CustomOp
from deep500.operators.custom.findings import told
from deep500.workloads._importing import find_object, importable_folder

__all__ = ["FrameworkFunction", "framework_function", "read_against"]


@dataclass(frozen=True)
class FrameworkFunction:
    """A function of a framework's tensors.

    Attributes:
        name: What it is called.
        call: The function.
    """

    name: str
    call: Callable[..., Any]


def framework_function(op: CustomOp, framework: str, named: str | None = None) -> FrameworkFunction | None:
    """Return the function of a framework that an operator is compared with; ``None`` where there is none.

    Args:
        op: The operator, whose :meth:`CustomOp.framework_function` is asked.
        framework: The framework.
        named: ``package.module:function`` instead of what the operator says.

    Raises:
        MeasurementError: The function that is named does not exist.
        OperatorError: The operator's method fails, or it returns no function.
    """
    if named is not None:
        with importable_folder():
            found: Any = find_object(named)
        name = named
    else:
        try:
            found = op.framework_function(framework)
        except Deep500Error:
            raise
        except Exception as error:
            raise OperatorError(f"{op.name}.framework_function failed for {framework!r}: {told(error)}") from error
        name = _name(found, framework)
    if found is None:
        return None
    if not callable(found):
        raise OperatorError(f"{op.name} is to be compared with {shown(found)}; accepted is a function of tensors.")
    return FrameworkFunction(name, found)


def read_against(texts: Iterable[str]) -> dict[str, str]:
    """Return functions by framework, from texts such as ``"torch.nn.functional:softplus"``.

    The framework is the one whose module the text begins with; of a function in another module it stands in front:
    ``"pytorch=my_module:softplus"``.

    Raises:
        OperatorError: A text has another form, its framework cannot be told, or a framework is named twice.
        UnknownNameError: There is no such framework.
    """
    found: dict[str, str] = {}
    for text in texts:
        framework, equals, name = text.partition("=")
        if not equals:
            framework, name = _framework_of(text), text
        FRAMEWORKS.get(framework)
        if ":" not in name:
            raise OperatorError(f"{shown(text)} names no function; accepted is [FRAMEWORK=]package.module:function.")
        if framework in found:
            raise OperatorError(f"Two functions of {framework} were given to compare with; accepted is one of each.")
        found[framework] = name
    return found


def _framework_of(text: str) -> str:
    """Return the framework whose module a text begins with."""
    module = text.partition(":")[0].partition(".")[0]
    for framework in FRAMEWORKS.names():
        requirement = getattr(FRAMEWORKS.get(framework), "REQUIREMENT", None)
        if isinstance(requirement, Requirement) and requirement.module == module:
            return framework
    raise OperatorError(
        f"{shown(text)} is of no framework that is known; say which one's tensors it takes: FRAMEWORK={text}, with one "
        f"of {', '.join(FRAMEWORKS.names())}."
    )


def _name(function: Any, framework: str) -> str:
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
    if "<" in name:  # a lambda, or a function within the author's method
        return f"{framework}'s own function"
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module else str(name)
