"""How the reverse pass finds the rule of an operator."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from deep500.core.errors import PluginError

__all__ = ["Rule", "defined_by_others", "find_rule", "has_rule", "reverse_rule", "ruled_operators", "without_gradient"]

#: Gets a node and the gradients by its outputs (``None`` where there is none); returns those by its inputs.
Rule = Callable[..., Any]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_TABLE: dict[tuple[str, str], dict[int, Rule]] = {}
_imported = False


def reverse_rule(*operators: str, since: int = 1, domain: str = "") -> Callable[[_Function], _Function]:
    """Return a decorator that registers a rule.

    Args:
        *operators: The operators' names.
        since: First opset version whose form of the operators the rule understands.
        domain: The operators' domain.
    """

    def decorate(rule: _Function) -> _Function:
        for operator in operators:
            versions = _TABLE.setdefault((domain, operator), {})
            if since in versions:
                raise PluginError(
                    f"There are two rules for the derivative of {domain or 'ai.onnx'}::{operator}-{since}."
                )
            versions[since] = rule
        return rule

    return decorate


def defined_by_others(*operators: str, since: int = 1, domain: str = "") -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function which writes an operator in terms of others that have rules.

    The function gets the node and returns its outputs, as far as they are given; the reverse pass goes through the
    nodes that it appends.
    """

    def decorate(definition: _Function) -> _Function:
        def rule(node: Any, *gradients: Any) -> Any:
            return node.through(definition, gradients)

        reverse_rule(*operators, since=since, domain=domain)(rule)
        return definition

    return decorate


def without_gradient(*operators: str) -> None:
    """Register operators whose derivative is zero wherever it exists."""

    def rule(node: Any, *gradients: Any) -> None:
        return None

    reverse_rule(*operators)(rule)


def find_rule(domain: str, operator: str, version: int) -> Rule | None:
    """Return the newest rule that is not newer than a version of the domain; ``None`` where there is none."""
    _import_all()
    fitting = {since: rule for since, rule in _TABLE.get((domain, operator), {}).items() if since <= version}
    return fitting[max(fitting)] if fitting else None


def has_rule(domain: str, operator: str, version: int) -> bool:
    """Whether there is a rule."""
    return find_rule(domain, operator, version) is not None


def ruled_operators() -> list[tuple[str, str]]:
    """Return domain and name of the operators that have a rule, sorted."""
    _import_all()
    return sorted(_TABLE)


def _import_all() -> None:
    global _imported
    if _imported:
        return
    package = importlib.import_module("deep500.networks.differentiation.rules")
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    _imported = True
