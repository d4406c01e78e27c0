"""What a check of a file found, operator by operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deep500._version import __version__
from deep500.operators.custom import Finding, Outcome
from deep500.workloads._operator_check.building import Build
from deep500.workloads._operator_check.measuring import CallTime

__all__ = ["SCHEMA_VERSION", "CheckReport", "OperatorReport"]

#: Version of the file's form; it grows with every change that a reader could notice.
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class OperatorReport:
    """One operator.

    Attributes:
        name: Its name in the file.
        title: The operator with its attributes.
        build: What it is; ``None`` where it could not be built.
        build_failure: Why it could not be built, in one line; empty where it could.
        compiler_output: All that the compiler said of one that does not compile.
        findings: Each with its section: ``"operator"``, or a framework.
        times: How long calls take.
    """

    name: str
    title: str
    build: Build | None = None
    build_failure: str = ""
    compiler_output: str = ""
    findings: tuple[tuple[str, Finding], ...] = ()
    times: tuple[CallTime, ...] = ()

    def rows(self) -> Iterator[tuple[str, str, Outcome, str]]:
        """Yield all steps: section, check, outcome and detail."""
        built = Outcome.FAILED if self.build is None else Outcome.PASSED
        yield "build", "", built, self.build_failure if self.build is None else str(self.build)
        for section, finding in self.findings:
            yield section, finding.check, finding.outcome, finding.detail
        for time in self.times:
            outcome = Outcome.FAILED if time.time is None else Outcome.PASSED
            yield time.framework, f"time, {time.size}", outcome, str(time)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(outcome is not Outcome.FAILED for _, _, outcome, _ in self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "name": self.name,
            "operator": self.title,
            "passed": self.passed,
            "build": None if self.build is None else self.build.to_dict(),
            "build_failure": self.build_failure,
            "compiler_output": self.compiler_output,
            "findings": [{"section": section, **finding.to_dict()} for section, finding in self.findings],
            "times": [time.to_dict() for time in self.times],
        }


@dataclass(frozen=True)
class CheckReport:
    """A file.

    Attributes:
        path: Where it is.
        frameworks: Frameworks that took part.
        device: Where they ran.
        operators: Its operators.
    """

    path: str
    frameworks: tuple[str, ...]
    device: str
    operators: tuple[OperatorReport, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(operator.passed for operator in self.operators)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "kind": "deep500.operator_check",
            "schema_version": SCHEMA_VERSION,
            "deep500": __version__,
            "file": self.path,
            "frameworks": list(self.frameworks),
            "device": self.device,
            "passed": self.passed,
            "operators": [operator.to_dict() for operator in self.operators],
        }
