"""How an adapter finds the lowering of an operator: by domain, name and version."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from deep500.core.errors import PluginError, UnsupportedOperatorError
from deep500.networks.operator_node import OperatorNode

__all__ = ["LoweringTable"]

_Lowering = TypeVar("_Lowering", bound=Callable[..., Any])


class LoweringTable:
    """The lowerings of one framework.

    The files of the adapter's ``lowering`` package (one an operator family) register their functions with
    :meth:`register`. They are imported when the first operator is looked up. Among several versions of a lowering the
    newest one that is not newer than the node is taken.
    """

    def __init__(self, framework: str, package: str) -> None:
        """Name the framework and the package that holds its lowerings."""
        self.framework = framework
        self.package = package
        self._table: dict[tuple[str, str], dict[int, Callable[..., Any]]] = {}
        self._on_host: set[tuple[str, str]] = set()
        self._complete = False

    def register(
        self, op_type: str, *, since: int, domain: str = "", on_host: bool = False
    ) -> Callable[[_Lowering], _Lowering]:
        """Return a decorator that registers a lowering.

        Args:
            op_type: The operator's name; ``"*"`` for all of the domain that have none of their own.
            since: First opset version whose form of the operator the lowering understands; later versions up to the
                next registered one are included.
            domain: The operator's domain.
            on_host: Whether NumPy computes it, since the framework has no values of its kind (texts, files of images).
        """

        def decorate(lowering: _Lowering) -> _Lowering:
            versions = self._table.setdefault((domain, op_type), {})
            if since in versions:
                raise PluginError(f"{self.framework} has two lowerings of {domain or 'ai.onnx'}::{op_type}-{since}.")
            versions[since] = lowering
            if on_host:
                self._on_host.add((domain, op_type))
            return lowering

        return decorate

    def find(self, node: OperatorNode) -> Callable[..., Any]:
        """Return the lowering for a node.

        Raises:
            UnsupportedOperatorError: There is none.
        """
        self._import_all()
        versions = self._table.get((node.domain, node.op_type), {})
        for table in (versions, self._table.get((node.domain, "*"), {})):
            fitting = [version for version in table if version <= node.version]
            if fitting:
                return table[max(fitting)]
        reason = f": it has one from version {min(versions)} on, and the node is older" if versions else ""
        raise UnsupportedOperatorError(
            f"The {self.framework} adapter has no lowering for {node.label}{reason}. docs/operators.md is the table of "
            f"what can be run; docs/extending.md shows how to add a lowering."
        )

    def has(self, domain: str, op_type: str, version: int) -> bool:
        """Whether there is a lowering for an operator of a version of its domain."""
        self._import_all()
        tables = [self._table.get((domain, name), {}) for name in (op_type, "*")]
        return any(since <= version for table in tables for since in table)

    def is_on_host(self, domain: str, op_type: str) -> bool:
        """Whether NumPy computes an operator in place of the framework."""
        self._import_all()
        return (domain, op_type if (domain, op_type) in self._table else "*") in self._on_host

    def operators(self) -> list[tuple[str, str, int]]:
        """Return domain, name and first version of every lowering of one operator, sorted."""
        self._import_all()
        return sorted((domain, name, since) for (domain, name), v in self._table.items() for since in v if name != "*")

    def _import_all(self) -> None:
        if self._complete:
            return
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self.package}.{module.name}")
        self._complete = True
