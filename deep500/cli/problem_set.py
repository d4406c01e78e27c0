"""``deep500 bench PROBLEM_SET``: what Deep500's operators cost over the framework's own functions, size by size."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.console import print_error, print_table
from deep500.cli.exit_codes import FAILED, PASSED
from deep500.cli.problem_report import (
    duration_text,
    header_text,
    left_out_text,
    list_rows,
    notes,
    overhead_text,
    summary_text,
)
from deep500.cli.progress_line import ProgressLine, progress_text
from deep500.core.errors import Deep500Error, MeasurementError
from deep500.core.texts import message_of, shown_path

if TYPE_CHECKING:
    from deep500.measure.results.collection import Collection
    from deep500.measure.results.document import Measurement
    from deep500.measure.sampling.plan import SamplingPlan
    from deep500.measure.sampling.progress import Progress
    from deep500.operators.problem_set import ProblemSet
    from deep500.operators.problems import Problem

__all__ = ["PROBLEM_SET_EXAMPLES", "problem_set_command", "problem_set_parser"]

PROBLEM_SET_EXAMPLES = """\b
Examples:
  deep500 bench deepbench --list
  deep500 bench deepbench --op gemm --list
  deep500 bench deepbench --op gemm --framework pytorch,tensorflow,reference --limit 12
  deep500 bench deepbench --op convolution --threads 1 --output convolution.json
  deep500 bench deepbench --op convolution --threads 1 --output convolution.json --resume
  deep500 bench deepbench --op rnn --framework pytorch --device gpu:0 --launches 6

\b
The framework's own function, and the same as an operator of Deep500
(custom_op of custom_op_from_native), run in turn in one fresh process a size.
Sizes for which there is not enough memory are left out, and told.

\b
Exit code:
  0 measured, 1 a size could not be measured, 2 a mistake in the command,
  130 interrupted (the sizes so far are shown, and are in the result file)
"""

#: Of the inputs and the output of a problem, there are: the values that were drawn; the framework's copies, or the
#: layout in which it computes; and the outputs of two runs, the one that is made before the other is given back.
_COPIES = 3

#: What a process with a framework takes besides, in bytes.
_PROCESS_BYTES = 2**30

SetName = Annotated[str, typer.Argument(metavar="PROBLEM_SET", help="Its name: deep500 list problem_sets.")]
Operation = Annotated[str | None, typer.Option("--op", metavar="OPERATOR", help="Of which operator; --list shows all.")]
Frameworks = Annotated[
    str | None,
    typer.Option("--framework", metavar="NAMES", help="Separated by commas; by default all that are installed."),
]
DeviceName = Annotated[str | None, typer.Option("--device", metavar="DEVICE", help="Where to run: cpu, gpu or gpu:N.")]
Limit = Annotated[
    int | None, typer.Option(metavar="N", help="So many sizes, evenly spread from the least work to the most.")
]
Dtype = Annotated[str, typer.Option(metavar="DTYPE", help="float16, bfloat16, float32 or float64.")]
Launches = Annotated[int, typer.Option(metavar="N", help="Fresh processes a size; an interval over them needs 6.")]
TimeLimit = Annotated[
    float, typer.Option(metavar="SECONDS", help="Longest sampling in one process; start and warm-up come on top.")
]
Threads = Annotated[int | None, typer.Option(metavar="N", help="Number of threads that libraries may use.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the random order of runs.")]
Output = Annotated[str | None, typer.Option(metavar="FILE", help="Write all measurements to this JSON file.")]
Resume = Annotated[bool, typer.Option("--resume", help="Keep what FILE has of the same sizes and settings.")]
List = Annotated[bool, typer.Option("--list", help="Show what there is, and measure nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


@functools.cache
def problem_set_parser() -> Any:
    """Return the command with its own options, for ``bench`` to hand its arguments to."""
    own = typer.Typer(add_completion=False, rich_markup_mode=None)
    own.command(name="bench", epilog=PROBLEM_SET_EXAMPLES)(problem_set_command)
    return typer.main.get_command(own)


def problem_set_command(
    name: SetName,
    operation: Operation = None,
    framework: Frameworks = None,
    device: DeviceName = None,
    limit: Limit = None,
    dtype: Dtype = "float32",
    launches: Launches = 1,
    time_limit: TimeLimit = 10.0,
    threads: Threads = None,
    seed: Seed = 0,
    output: Output = None,
    resume: Resume = False,
    list_: List = False,
    quiet: Quiet = False,
) -> int:
    """Measure what Deep500's operators cost over a framework's own functions, at the sizes of a problem set."""
    from deep500.core.counts import check_count
    from deep500.core.random import check_seed
    from deep500.measure.sampling.plan import SamplingPlan
    from deep500.operators.problem_set import PROBLEM_SETS, spread_over_work

    problem_set: ProblemSet = PROBLEM_SETS.get(name)()
    if list_:
        _list(problem_set, operation)
        return PASSED
    if operation is None:
        raise MeasurementError(f"--op is missing; the operators of {name} are {', '.join(problem_set.operations)}.")
    problems = problem_set.problems(operation)
    chosen = [(number, problems[number - 1]) for number in spread_over_work(problems, limit)]
    check_count("launches", launches, least=1, error=MeasurementError)
    plan = SamplingPlan(
        time_limit_s=time_limit,
        minimum_time_s=min(SamplingPlan.minimum_time_s, max(time_limit, 0.0)),
        threads=threads,
    )
    planned = _planned(f"{name}:{operation}", chosen, framework, device, dtype)
    collection = _collection(f"{name}:{operation}, native against wrapped", planned, output, resume)
    run = _Run(planned, collection, dtype, launches, plan, check_seed(seed), output)
    with ProgressLine(quiet) as line:
        run.all(line)
    return run.exit_code()


def _list(problem_set: ProblemSet, operation: str | None) -> None:
    if operation is None:
        print_table([(each, f"{len(problem_set.problems(each))} sizes") for each in problem_set.operations])
        return
    problems = problem_set.problems(operation)
    print_table(list_rows([(problem.title, problem.flops, problem.size_bytes("float32")) for problem in problems]))


@dataclass(frozen=True)
class _Size:
    """One size under one framework.

    Attributes:
        framework: The framework.
        number: Number of the size in the set.
        problem: What it is.
        workloads: The texts of its native and its wrapped form.
    """

    framework: str
    number: int
    problem: Problem
    workloads: tuple[str, str]


def _planned(
    name: str, chosen: Sequence[tuple[int, Problem]], frameworks: str | None, device: str | None, dtype: str
) -> list[_Size]:
    """Return what is to be measured, framework by framework, checked as far as nothing has to be imported for it."""
    from deep500.core.device import parse_device
    from deep500.workloads._problem import DTYPES, FORMS, check_measurable

    check_measurable(name, chosen[0][1])
    if dtype not in DTYPES:
        raise MeasurementError(f"--dtype was given as {dtype!r}; accepted are {', '.join(DTYPES)}.")
    place = "" if device is None else f":{parse_device(device)}"
    options = "" if dtype == "float32" else f",dtype={dtype}"

    def texts(framework: str, number: int) -> tuple[str, str]:
        native, wrapped = (f"{name},size={number},form={form}{options}@{framework}{place}" for form in FORMS)
        return native, wrapped

    return [
        _Size(framework, number, problem, texts(framework, number))
        for framework in _frameworks(frameworks)
        for number, problem in chosen
    ]


def _frameworks(text: str | None) -> list[str]:
    """Return the frameworks that are named, or all that are installed."""
    from deep500.frameworks import FRAMEWORKS, installed_frameworks
    from deep500.recipe.resolve import load_framework

    if text is None:
        return installed_frameworks("problem_function")
    names = [part.strip() for part in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise MeasurementError(
            f"--framework was given as {text!r}; accepted are different names with commas between them, such as "
            f"{','.join(FRAMEWORKS.names())}."
        )
    for each in names:
        load_framework(each)
    return names


def _collection(title: str, planned: Sequence[_Size], output: str | None, resume: bool) -> Collection:
    """Return what is to be filled, with what the file has already where that is wanted."""
    from deep500.core.files import check_writable
    from deep500.measure.results.collection import Collection, read_collection

    collection = Collection(title, [size.workloads for size in planned])
    if output is not None:
        check_writable(output, "result")
    elif resume:
        raise MeasurementError("--resume was given without --output, the file that is gone on with.")
    if resume and output is not None and Path(output).exists():
        earlier = read_collection(output)
        for workloads in collection.planned:
            if workloads in earlier.measurements:
                collection.add(earlier.measurements[workloads])
    return collection


@dataclass
class _Run:
    """Measures what is planned, and shows each size as soon as it is known."""

    planned: Sequence[_Size]
    collection: Collection
    dtype: str
    launches: int
    plan: SamplingPlan
    seed: int
    output: str | None

    def __post_init__(self) -> None:
        """Drop what was measured in another way than is asked for now."""
        from deep500.measure.clock import Stopwatch

        self._width = max(len(size.problem.title) for size in self.planned)
        self._given_up: dict[str, str] = {}
        self._failures: list[str] = []
        self._measured = 0
        self._is_written = False
        self._watch = Stopwatch()
        found = self.collection.measurements
        for workloads in [key for key, measurement in found.items() if not self._is_asked_for(measurement)]:
            self.collection.drop(workloads)

    def all(self, line: ProgressLine) -> None:
        """Measure all sizes; show what they come to, also when something interrupts."""
        framework = None
        try:
            for index, size in enumerate(self.planned):
                if size.framework != framework:
                    line.print(header_text(size.framework, self._width))
                    framework = size.framework
                self._one(index, size, line)
        except KeyboardInterrupt:
            if not self.collection.measurements:
                print_error("interrupted before the first size had been measured.")
            raise
        finally:
            line.print("\n".join(self._summary()))

    def exit_code(self) -> int:
        """Return the command's exit code.

        Raises:
            MeasurementError: Nothing could be measured at all.
        """
        if self._failures and not self.collection.measurements:
            raise MeasurementError(f"No size could be measured. {self._failures[0]}")
        return FAILED if self._failures else PASSED

    def _one(self, index: int, size: _Size, line: ProgressLine) -> None:
        """Measure one size, or say why not."""
        from deep500.measure.results.overheads import overhead

        found = self.collection.measurements.get(size.workloads)
        if found is None:
            found = self._measurement(index, size, line)
            if self.output is not None:
                self.collection.write(self.output)
                self._is_written = True
        row = (size.number, size.problem.title, self._width)
        if found is None:
            line.print(left_out_text(*row, self.collection.left_out[size.workloads]))
        else:
            line.print(overhead_text(*row, overhead(found)))

    def _measurement(self, index: int, size: _Size, line: ProgressLine) -> Measurement | None:
        from deep500.measure.sampling.benchmark import bench

        reason = self._given_up.get(size.framework) or self._lack_of_memory(size.problem)
        if reason is not None:
            self.collection.leave_out(size.workloads, reason)
            return None

        def tell(progress: Progress) -> None:
            where = f"{size.framework}, size {index + 1} of {len(self.planned)} ({size.problem.title})"
            line.tell(f"{self._time_left(index)}{where}: {progress_text(progress)}")

        try:
            found = bench(
                *size.workloads,
                launches=self.launches,
                plan=self.plan,
                pairing="samples",
                seed=self.seed,
                on_progress=tell,
            )
            self.collection.add(found)
        except Deep500Error as error:
            self._fail(size, message_of(error))
            return None
        self._measured += 1
        return found

    def _fail(self, size: _Size, reason: str) -> None:
        self.collection.leave_out(size.workloads, reason)
        self._failures.append(reason)
        others = [each.workloads for each in self.planned if each.framework == size.framework]
        if not any(workloads in self.collection.measurements for workloads in others):
            # What keeps the first size of a framework from being measured keeps the others as well: an operator that
            # it does not have, a device that is not there. Memory was looked at before.
            self._given_up[size.framework] = f"as the first size of {size.framework}"

    def _lack_of_memory(self, problem: Problem) -> str | None:
        """Return what to say where there is too little memory for a problem."""
        from deep500.core.quantities import scaled
        from deep500.measure.environment.free_memory import free_memory_bytes

        needed, free = _COPIES * problem.size_bytes(self.dtype) + _PROCESS_BYTES, free_memory_bytes()
        if needed <= free:
            return None
        return f"it takes about {scaled('B', needed)[0]} of memory, and {scaled('B', free)[0]} are free"

    def _is_asked_for(self, measurement: Measurement) -> bool:
        design = measurement.design
        same = (design.launches, design.seed, dict(design.plan)) == (self.launches, self.seed, self.plan.to_dict())
        return same and measurement.complete

    def _time_left(self, index: int) -> str:
        """Return how long the rest takes, if the other sizes take as long as those so far."""
        if not self._measured:
            return ""
        left = sum(
            size.workloads not in self.collection.measurements and size.framework not in self._given_up
            for size in self.planned[index:]
        )
        return f"about {duration_text(self._watch.elapsed_s() / self._measured * left)} left; "

    def _summary(self) -> Iterator[str]:
        from deep500.measure.results.overheads import overhead

        everything = []
        yield ""
        for framework in dict.fromkeys(size.framework for size in self.planned):
            sizes = [size.workloads for size in self.planned if size.framework == framework]
            found = [
                overhead(self.collection.measurements[key]) for key in sizes if key in self.collection.measurements
            ]
            left_out = sum(key in self.collection.left_out for key in sizes)
            yield summary_text(framework, found, left_out, len(sizes) - len(found) - left_out)
            everything += found
        yield from notes(everything)
        if self.output is not None and self._is_written:
            yield f"The result is in {shown_path(self.output)}"
