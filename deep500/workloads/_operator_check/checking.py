"""A whole check: every operator of a file is built, validated in each framework, and measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deep500.core.device import parse_device
from deep500.core.errors import CompileError, Deep500Error, OperatorError, near_miss
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import message_of, one_line, shown_path
from deep500.frameworks import installed_frameworks
from deep500.measure.sampling.progress import Progress
from deep500.operators.custom import CustomOp, Finding, Outcome
from deep500.recipe.resolve import load_framework
from deep500.workloads._operator_check.apart import BY_ITSELF, Request, run_apart
from deep500.workloads._operator_check.building import BuildClock, build
from deep500.workloads._operator_check.functions import framework_function
from deep500.workloads._operator_check.inputs import dtypes_of, has_sizes
from deep500.workloads._operator_check.measuring import CallTime, measure_calls
from deep500.workloads._operator_check.operator_file import OperatorFile, open_operator_file
from deep500.workloads._operator_check.report import CheckReport, OperatorReport

__all__ = ["CheckSettings", "check_file", "checked_frameworks"]

#: The framework whose checks share the process of those without a framework: it has no start to wait for.
_REFERENCE = "reference"


@dataclass(frozen=True)
class CheckSettings:
    """How a file is checked.

    Attributes:
        frameworks: Names of the frameworks; ``None`` for all that are installed.
        device: Where they run.
        attributes: Values of attributes, for those operators that have them.
        inputs: What the inputs are like; ``None`` for the operators' examples.
        against: Functions to compare with, by framework.
        measure: Whether calls are measured.
        launches: Fresh processes a measurement.
        seed: Seed of the values.
    """

    frameworks: Sequence[str] | None = None
    device: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[TensorDescriptor, ...] | None = None
    against: Mapping[str, str] = field(default_factory=dict)
    measure: bool = True
    launches: int = 6
    seed: int = 0


def checked_frameworks() -> list[str]:
    """Return the frameworks here that take operators, the NumPy reference first."""
    return sorted(installed_frameworks("custom_op"), key=lambda name: (name != _REFERENCE, name))


def check_file(
    path: str | Path, settings: CheckSettings | None = None, tell: Callable[[str], None] | None = None
) -> CheckReport:
    """Build, validate and measure every operator of a file.

    What goes wrong in an operator is a finding of the report, also where it crashes. Validation and measurement are in
    processes of their own, which end when this function does.

    Args:
        path: A Python file with operators, or a C++ or CUDA source.
        settings: How.
        tell: Is told what is being done, a few words each time.

    Raises:
        OperatorError: There is no such file, it cannot be executed, it holds no operator, or none of them has one of
            the attributes.
        CompileError: The file compiles an operator while it is executed, which fails.
        Deep500Error: A framework, its device or a function to compare with is not there.
    """
    settings = settings or CheckSettings()
    tell = tell or (lambda text: None)
    device = str(parse_device(settings.device))
    frameworks = checked_frameworks() if settings.frameworks is None else list(dict.fromkeys(settings.frameworks))
    for framework in frameworks:
        load_framework(framework)
    clock = BuildClock()
    tell(f"reading {shown_path(path)}")
    file = open_operator_file(path, settings.inputs)
    run = _Check(file, settings, frameworks, tell)
    run.build(clock)
    run.validate()
    if settings.measure:
        run.measure()
    return CheckReport(str(path), tuple(frameworks), device, tuple(run.reports[name] for name in file.names))


class _Check:
    """One check, step by step."""

    def __init__(
        self, file: OperatorFile, settings: CheckSettings, frameworks: Sequence[str], tell: Callable[[str], None]
    ) -> None:
        self.file, self.settings, self.frameworks, self.tell = file, settings, frameworks, tell
        self.reports = {name: OperatorReport(name, name) for name in file.names}
        self._operators: dict[str, tuple[CustomOp, Mapping[str, Any]]] = {}

    def build(self, clock: BuildClock) -> None:
        """Build every operator.

        Raises:
            OperatorError: None of them has an attribute that a value was given for.
        """
        used: set[str] = set()
        known: list[str] = []
        for name in self.file.names:
            self.tell(f"building {name}")
            try:
                taken = self.file.attribute_names(name) if self.settings.attributes else []
                known += taken
                attributes = {key: value for key, value in self.settings.attributes.items() if key in taken}
                used |= attributes.keys()
                op, built = build(self.file, name, attributes, clock)
            except Deep500Error as error:
                self.reports[name] = _not_built(name, error)
            else:
                self._operators[name] = op, attributes
                self.reports[name] = OperatorReport(name, _title(name, op), built)
        unused = [key for key in self.settings.attributes if key not in used]
        if unused and len(self._operators) == len(self.file.names):
            raise OperatorError(
                f"No operator of {shown_path(self.file.path)} has the attribute {unused[0]!r}."
                f"{near_miss(unused[0], known)} Attributes: {', '.join(dict.fromkeys(known)) or 'none'}."
            )

    def validate(self) -> None:
        """Look at values and derivatives, of the operators by themselves and in every framework."""
        if not self._operators:
            return
        request = Request(
            str(self.file.path.absolute()),
            tuple((name, attributes) for name, (_, attributes) in self._operators.items()),
            (),
            self.settings.inputs,
            self.settings.device,
            self.settings.against,
            self.settings.seed,
        )
        for sections in self._processes():
            for message in run_apart(replace(request, sections=sections)):
                self.tell(f"{message.operator}, {message.section}: {message.check}")
                if message.finding is not None:
                    self._add(message.operator, findings=((message.section, message.finding),))

    def measure(self) -> None:
        """Measure calls of those operators that are right."""
        for name, (op, attributes) in self._operators.items():
            for framework in self.frameworks:
                if not self.reports[name].passed:
                    finding = Finding("time", Outcome.NOT_RUN, "a check failed above; only what is right is measured")
                    self._add(name, findings=((framework, finding),))
                    continue
                for size in self._sizes(op):
                    self.tell(f"{name}, {framework}: time of a call, {size}")
                    self._add(name, times=(self._measured(name, op, attributes, framework, size),))

    def _processes(self) -> list[tuple[str, ...]]:
        """Return the sections that share a process: each framework has one, but NumPy, which is loaded anyway."""
        first = (BY_ITSELF, *(f for f in self.frameworks if f == _REFERENCE))
        return [first, *((f,) for f in self.frameworks if f != _REFERENCE)]

    def _sizes(self, op: CustomOp) -> list[str]:
        given = self.settings.inputs
        return ["small", "large"] if has_sizes(op, dtypes_of(op, given)[0], given) else ["small"]

    def _measured(self, name: str, op: CustomOp, attributes: Mapping[str, Any], framework: str, size: str) -> CallTime:
        settings = self.settings
        named = settings.against.get(framework)

        def heard(progress: Progress) -> None:
            self.tell(f"{name}, {framework}: time of a call, {size}, process {progress.launch} of {progress.launches}")

        try:
            function = framework_function(op, framework, named)
        except Deep500Error as error:
            return CallTime(framework, size, failure=message_of(error))
        return measure_calls(
            self.file.path.absolute(),
            name,
            attributes,
            framework,
            size,
            device=settings.device,
            inputs=settings.inputs,
            function=None if function is None else function.name,
            against=named or "own",
            launches=settings.launches,
            seed=settings.seed,
            on_progress=heard,
        )

    def _add(
        self,
        name: str,
        findings: tuple[tuple[str, Finding], ...] = (),
        times: tuple[CallTime, ...] = (),
    ) -> None:
        report = self.reports[name]
        self.reports[name] = replace(report, findings=report.findings + findings, times=report.times + times)


def _title(name: str, op: CustomOp) -> str:
    """Return the operator with its attributes, after its name in the file where that is another one."""
    text = repr(op).strip("<>")
    return text if op.name == name else f"{name}: {text}"


def _not_built(name: str, error: Deep500Error) -> OperatorReport:
    """Return the report of an operator that cannot be built: the first line, and what the compiler said."""
    text = str(error)
    headline = text.partition("\n\n")[0] if isinstance(error, CompileError) else text
    output = text.partition("\n\n")[2] if isinstance(error, CompileError) else ""
    return OperatorReport(name, name, build_failure=one_line(headline), compiler_output=output)
