"""Optional libraries: whether they are there, and what to say when they are not."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass

from deep500.core.errors import MissingDependencyError

__all__ = ["Requirement"]


@dataclass(frozen=True)
class Requirement:
    """A library that one part of Deep500 needs and that an extra installs.

    Attributes:
        module: Name under which it is imported.
        extra: Deep500's extra that installs it.
        distributions: Names under which it may be installed, for the version.
    """

    module: str
    extra: str
    distributions: tuple[str, ...]

    def is_installed(self) -> bool:
        """Whether the library can be found; it is not imported."""
        try:
            return importlib.util.find_spec(self.module) is not None
        except (ImportError, ValueError):
            return False

    def version(self) -> str:
        """Return the installed version, ``"unavailable"`` when there is none."""
        for distribution in self.distributions:
            try:
                return importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                continue
        return "unavailable"

    def require(self, what: str) -> None:
        """Check that the library is installed.

        Args:
            what: What needs it, for the message.

        Raises:
            MissingDependencyError: It is not installed.
        """
        if not self.is_installed():
            raise MissingDependencyError(
                f"{what} needs the library {self.module!r}, which is not installed. "
                f"Install it with: pip install 'deep500[{self.extra}]'"
            )
