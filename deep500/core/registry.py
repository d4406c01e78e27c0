"""Finding plug-ins by file name, without importing them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import types
from collections.abc import Iterator
from typing import Any

from deep500.core.errors import Deep500Error, PluginError, UnknownNameError, near_miss
from deep500.core.requirement import Requirement

__all__ = ["Registry"]


class Registry:
    """The plug-ins of one kind: each is one module (or sub-package) of a package, named for its file.

    Listing names reads the folder and imports nothing. Loading one imports that one. A plug-in file's ``__all__``
    names exactly one object: the plug-in. Other distributions add theirs through the entry-point group of the
    package's name (``deep500.networks.models``); an entry point cannot replace a plug-in that Deep500 brings. Where
    plug-ins may need a framework, each adapter may bring one, too: the file named for the kind, under the name that the
    adapter's package has as a constant (``communicator.py`` and ``COMMUNICATOR = "..."``).

    Example:
        >>> Registry("optimizer", "deep500.training.optimizers").names()[:3]
        ['accelegrad', 'adagrad', 'adam']
    """

    def __init__(
        self,
        kind: str,
        package: str,
        *,
        entry_point_group: str | None = None,
        whole_module: bool = False,
        adapters: str | None = None,
    ) -> None:
        """Describe where plug-ins of this kind live.

        Args:
            kind: What one of them is, in the singular, for messages: ``"model"``.
            package: The package that holds one file each: ``"deep500.networks.models"``.
            entry_point_group: Group in which other distributions register; by default the package's own name.
            whole_module: The plug-in is the module itself instead of the one object that its ``__all__`` names.
            adapters: The package of the adapters, where these bring plug-ins of this kind. Their packages are imported
                to list names, which loads no framework.
        """
        self.kind = kind
        self.package = package
        self.entry_point_group = entry_point_group or package
        self.whole_module = whole_module
        self.adapters = adapters
        self._loaded: dict[str, Any] = {}

    def names(self) -> list[str]:
        """Return the names of all plug-ins of this kind, sorted, without importing any."""
        return sorted(set(self._file_names()) | set(self._entry_points()) | set(self._of_adapters()))

    def get(self, name: str) -> Any:
        """Import and return one plug-in.

        Raises:
            UnknownNameError: There is none of this name; the message lists those that exist.
            PluginError: The file does not name exactly one object in its ``__all__``, or the entry point leads nowhere.
            MissingDependencyError: The plug-in needs a library that is not installed.
        """
        if not isinstance(name, str):
            raise UnknownNameError(f"A {self.kind} was named {name!r}; accepted is one of: {', '.join(self.names())}.")
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def adapter_of(self, name: str) -> str | None:
        """Return the package of the adapter that brings a plug-in; ``None`` for one that none brings."""
        found = self._of_adapters().get(name)
        return None if found is None else found.__name__

    def __contains__(self, name: object) -> bool:
        """Whether there is a plug-in of this name."""
        return name in self.names()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self.names())

    def _file_names(self) -> list[str]:
        try:
            spec = importlib.util.find_spec(self.package)
        except ModuleNotFoundError:  # not even the package above it is there
            spec = None
        if spec is None or spec.submodule_search_locations is None:
            raise PluginError(f"There is no package {self.package} to hold plug-ins of the kind {self.kind!r}.")
        modules = pkgutil.iter_modules(spec.submodule_search_locations)
        return [module.name for module in modules if not module.name.startswith("_")]

    def _entry_points(self) -> dict[str, importlib.metadata.EntryPoint]:
        return {point.name: point for point in importlib.metadata.entry_points(group=self.entry_point_group)}

    def _of_adapters(self) -> dict[str, types.ModuleType]:
        """Return the adapter of each plug-in that one brings, by the plug-in's name."""
        if self.adapters is None:
            return {}
        adapters = Registry("adapter", self.adapters, whole_module=True)
        named = {adapter: getattr(adapters.get(adapter), self.kind.upper(), None) for adapter in adapters}
        return {name: adapters.get(adapter) for adapter, name in named.items() if isinstance(name, str)}

    def _load_from_adapter(self, name: str, adapter: types.ModuleType) -> Any:
        requirement = getattr(adapter, "REQUIREMENT", None)
        if isinstance(requirement, Requirement):
            requirement.require(f"The {self.kind} {name!r}")
        return self._only_object(importlib.import_module(f"{adapter.__name__}.{self.kind}"))

    def _load(self, name: str) -> Any:
        if name in self._file_names():
            module = importlib.import_module(f"{self.package}.{name}")
            return module if self.whole_module else self._only_object(module)
        adapters = self._of_adapters()
        if name in adapters:
            return self._load_from_adapter(name, adapters[name])
        points = self._entry_points()
        if name in points:
            return self._load_entry_point(points[name])
        known = self.names()
        raise UnknownNameError(
            f"There is no {self.kind} named {name!r}.{near_miss(name, known)} Known: {', '.join(known) or 'none'}."
        )

    def _load_entry_point(self, point: importlib.metadata.EntryPoint) -> Any:
        try:
            found = point.load()
            # An entry point may name the plug-in's file, as ours are named, or the object in it.
            is_file = isinstance(found, types.ModuleType) and not self.whole_module
            return self._only_object(found) if is_file else found
        except (ImportError, AttributeError) as error:
            if isinstance(error, Deep500Error):
                raise
            raise PluginError(
                f"The {self.kind} {point.name!r} that another distribution registers as {point.value!r} cannot be "
                f"loaded: {error}"
            ) from error

    def _only_object(self, module: Any) -> Any:
        exported = getattr(module, "__all__", None)
        if not exported or len(exported) != 1 or not hasattr(module, exported[0]):
            raise PluginError(
                f"The {self.kind} file {module.__name__} must name exactly one object that it defines in __all__, "
                f"the {self.kind}; it names {exported!r}."
            )
        return getattr(module, exported[0])
