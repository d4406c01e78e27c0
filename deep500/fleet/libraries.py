"""The libraries of the extra ``fleet``; what needs one asks here first."""

from __future__ import annotations

from deep500.core.requirement import Requirement

__all__ = ["DEFUSEDXML", "FILELOCK", "HTCONDOR", "JINJA", "PACKAGING", "POLARS", "YAML"]

POLARS = Requirement("polars", "fleet", ("polars",))
JINJA = Requirement("jinja2", "fleet", ("Jinja2",))
YAML = Requirement("yaml", "fleet", ("PyYAML",))
DEFUSEDXML = Requirement("defusedxml", "fleet", ("defusedxml",))
FILELOCK = Requirement("filelock", "fleet", ("filelock",))
PACKAGING = Requirement("packaging", "fleet", ("packaging",))
HTCONDOR = Requirement("htcondor2", "htcondor", ("htcondor",))
