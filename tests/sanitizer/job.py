"""Starting a process under AddressSanitizer and UndefinedBehaviorSanitizer, and judging what it left."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

__all__ = ["Job", "Outcome", "judge", "judge_tests", "run_job", "run_tests"]

#: Flags of everything that is compiled: the binding, the adapters, the operators.
FLAGS = (
    "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
    # Casts to classes of the frameworks need type information that their libraries keep to themselves.
    "-fno-sanitize=vptr",
    # Abseil's containers are laid out differently where they see the sanitizer; TensorFlow's library does not see it.
    "-U__SANITIZE_ADDRESS__",
    "-DD500_CHECK_BOUNDS",
)  # fmt: skip

#: Flags for a framework. With these checks GCC takes no address of a function for a constant, as Abseil does.
FLAGS_FOR = {"tensorflow": ("-fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute",)}

#: Python and the frameworks free little at the end. Memory that is not there is to be an error of Python's.
_ASAN_OPTIONS = (
    "halt_on_error=1:detect_leaks=0:detect_stack_use_after_return=1:exitcode=99:allocator_may_return_null=1:"
    "max_allocation_size_mb=4096"
)

#: What a sanitizer writes at the top of a report of a planted bug.
_REPORTS = {"write": "heap-buffer-overflow", "overflow": "signed integer overflow"}

#: What UndefinedBehaviorSanitizer writes, to the standard error wherever the other one writes.
_UNDEFINED = ": runtime error: "

#: Tests of the operators of native_ops, which compare with references of their own.
TESTS = ("tests/conformance/test_native_ops.py", "tests/conformance/test_native_op_geometries.py")
_TESTS_WITH_NUMPY = "not torch and not tensorflow and not a_framework_does_not_know"

#: How much of a report, and of what a process said, is shown, in lines.
_SHOWN_LINES = 60


@dataclass(frozen=True)
class Job:
    """What one process does.

    Attributes:
        target: The framework.
        calls: Number of generated calls.
        planted: The bug that it ends with; empty for none.
        seed: What the calls are generated from.
    """

    target: str
    calls: int
    planted: str
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.target}, {self.calls} calls, planted {self.planted}"


@dataclass(frozen=True)
class Outcome:
    """What came of a job.

    Attributes:
        job: The job.
        counts: How many calls ended how.
        problems: What is wrong; empty where the job passed.
    """

    job: Job
    counts: Mapping[str, int] = field(default_factory=dict)
    problems: Sequence[str] = ()

    def __str__(self) -> str:
        total = sum(self.counts.values())
        right = sum(number for ending, number in self.counts.items() if ending.endswith("right"))
        lines = [
            f"{self.job.target}: {total} calls, {right} right, {total - right} refused" if total else self.job.target
        ]
        lines += [f"    {number:6} {ending}" for ending, number in sorted(self.counts.items())]
        found = [f"    the planted bug ({self.job.planted}) was found"] if self.job.planted else []
        lines += self.problems or found
        return "\n".join(lines)


def sanitizer_environment(target: str, reports: Path) -> dict[str, str]:
    """Return the variables of a framework's process under the sanitizers, which report into files of a folder.

    Raises:
        SystemExit: The compiler has no sanitizers.
    """
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    # An exception that is thrown before the library of C++ is loaded would end the process, so it is loaded first, too.
    libraries = [_library(compiler, name) for name in ("libasan.so", "libubsan.so", "libstdc++.so.6")]
    cache = platformdirs.user_cache_path("deep500", appauthor=False) / "sanitizer"
    return {
        **os.environ,
        # The compiler itself, and what it starts, is not what is examined.
        "CXX": shlex.join(["env", "-u", "LD_PRELOAD", *compiler, *FLAGS, *FLAGS_FOR.get(target, ())]),
        "DEEP500_NATIVE_CACHE": str(cache),
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": f"{_ASAN_OPTIONS}:log_path={reports / 'report'}",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:exitcode=99",
        "PYTHONMALLOC": "malloc",  # so that each of Python's objects has memory of its own
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "",
    }


def _library(compiler: Sequence[str], name: str) -> str:
    found = subprocess.run([*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
    path = found.stdout.strip()
    if found.returncode or not os.path.isabs(path):
        raise SystemExit(
            f"The compiler {shlex.join(compiler)} has no {name}. The job needs g++ with its sanitizers (Debian, "
            f"Ubuntu: 'apt install g++ libasan8 libubsan1'); name it in the variable CXX."
        )
    return path


def run_job(job: Job, timeout_s: float = 3600.0) -> Outcome:
    """Run a job in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="deep500-sanitizer-") as name:
        last_call = Path(name) / "last-call"
        options = {"calls": job.calls, "seed": job.seed, "planted": job.planted, "last-call": last_call}
        arguments = ["tests.sanitizer.child", job.target, *(f"--{key}={value}" for key, value in options.items())]
        left = _run(job.target, arguments, Path(name), timeout_s)
        return judge(job, *left, last_call.read_text() if last_call.exists() else "none")


def run_tests(timeout_s: float = 3600.0) -> Outcome:
    """Run the tests of the operators that come along, on NumPy arrays, in a process under the sanitizers."""
    arguments = ["pytest", "-q", "-p", "no:cacheprovider", "-k", _TESTS_WITH_NUMPY, *TESTS]
    with tempfile.TemporaryDirectory(prefix="deep500-sanitizer-") as name:
        return judge_tests(*_run("reference", arguments, Path(name), timeout_s))


def _run(target: str, module: Sequence[str], folder: Path, timeout_s: float) -> tuple[int, str, str, list[str]]:
    """Run a module of Python; return its exit status, its standard output and error, and the sanitizers' reports."""
    environment = sanitizer_environment(target, folder)
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        command = [sys.executable, "-m", *module]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=err, start_new_session=True)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    output, errors = ((folder / stream).read_text(errors="replace") for stream in ("out", "err"))
    reports = [path.read_text(errors="replace") for path in sorted(folder.glob("report.*"))]
    # Memory that cannot be had is logged there, too, and is no error: the operator is refused.
    reports = [report for report in reports if "ERROR: " in report]
    if _UNDEFINED in errors:
        reports.append(errors)
    return process.returncode, output, errors, reports


def judge_tests(status: int, output: str, errors: str, reports: Sequence[str]) -> Outcome:
    """Say whether tests passed without a report."""
    job = Job("native_ops", 0, "")
    passed = re.search(r"(\d+) passed", output)
    if status or reports or passed is None:
        told = "\n".join(reports).splitlines()[:_SHOWN_LINES] or (output + errors).splitlines()[-_SHOWN_LINES:]
        return Outcome(job, {}, [f"the tests did not pass (exit status {status})", "\n".join(told)])
    return Outcome(job, {"tests right": int(passed[1])})


def judge(job: Job, status: int, output: str, errors: str, reports: Sequence[str], last_call: str) -> Outcome:
    """Say whether a process did what it should: all calls without a report, then the one report of the planted bug.

    Args:
        job: What it had to do.
        status: Its exit status.
        output: Its standard output.
        errors: Its standard error.
        reports: What the sanitizers reported.
        last_call: The last call that it began.
    """
    lines = [line for line in output.splitlines() if line.startswith('{"counts"')]
    counts = json.loads(lines[-1])["counts"] if lines else {}
    told = "\n".join(reports).splitlines()[:_SHOWN_LINES] or errors.splitlines()[-_SHOWN_LINES:]
    last = "\n".join(told)
    if not lines:
        what = "a call was wrong, or crashed" if status else "the calls ended early"
        what = "a sanitizer reported" if reports else what
        return Outcome(job, {}, [f"{what} (exit status {status}), in: {last_call}", last])
    expected = _REPORTS[job.planted]
    if len(reports) != 1 or expected not in reports[0] or not status:
        problem = f"the planted bug was not found, but {len(reports)} reports (exit status {status}): the job is blind"
        return Outcome(job, counts, [problem, last])
    if sum(counts.values()) < job.calls:
        return Outcome(job, counts, [f"only {sum(counts.values())} of {job.calls} calls were made"])
    return Outcome(job, counts)
