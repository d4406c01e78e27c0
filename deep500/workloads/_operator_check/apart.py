"""Checks in a process of their own: an operator that crashes takes no more with it than the check it crashes in."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.operators.custom import Check, Finding, Outcome
from deep500.operators.custom.findings import run_check
from deep500.workloads._operator_check.operator_file import OperatorFile, open_operator_file
from deep500.workloads._operator_check.validating import Subject, framework_checks, operator_checks

__all__ = ["BY_ITSELF", "Message", "Request", "run_apart"]

#: The section of checks that no framework takes part in.
BY_ITSELF = "operator"

#: What is told before an operator's checks in a section are known, and of those that a crash has left out.
_START, _REST = "start", "further checks"

#: How long a process that has sent everything may take to end, in seconds.
_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Request:
    """What a process is to look at.

    Attributes:
        path: The file.
        operators: Names of its operators, with values of their attributes.
        sections: :data:`BY_ITSELF` and frameworks.
        given: What the user says of the inputs.
        device: Where frameworks run.
        against: Functions to compare with, by framework.
        seed: Seed of the values.
        done: Operators and sections that are left out, because they are done.
    """

    path: str
    operators: tuple[tuple[str, Mapping[str, Any]], ...]
    sections: tuple[str, ...]
    given: tuple[TensorDescriptor, ...] | None = None
    device: str | None = None
    against: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seed: int = 0
    done: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Message:
    """What a process tells: that it begins with a check, or what that found.

    Attributes:
        operator: Name of the operator.
        section: Its section.
        check: Its name.
        finding: What it found; ``None`` at its beginning.
    """

    operator: str
    section: str
    check: str
    finding: Finding | None = None


def run_apart(request: Request) -> Iterator[Message]:
    """Run checks in another process; yield what it tells.

    A check in which the process dies has failed, and the operator's further ones in this section are not run; a new
    process does the rest. The processes end with the iteration, however that ends.

    Args:
        request: The checks.
    """
    rest: Request | None = request
    while rest is not None:
        rest = yield from _run_until_death(rest)


def _run_until_death(request: Request) -> Generator[Message, None, Request | None]:
    """Run checks in one process; return what is left of them where it died, ``None`` where it did not."""
    context = multiprocessing.get_context("spawn")  # a process that has threads must not be forked
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(sender, request))
    process.start()
    sender.close()
    pairs = ((name, section) for section in request.sections for name, _ in request.operators)
    latest = Message(*next(pair for pair in pairs if pair not in request.done), _START)
    done = set(request.done)
    try:
        while True:
            try:
                message = receiver.recv()
            except EOFError:
                break
            if message is None:
                process.join(_PATIENCE_S)
                return None
            latest = message
            done.add((message.operator, message.section))
            yield message
        process.join(_PATIENCE_S)
        yield dataclasses.replace(latest, finding=Finding(latest.check, Outcome.FAILED, _death(process.exitcode)))
        left_out = Finding(_REST, Outcome.NOT_RUN, "not after the process has died")
        yield dataclasses.replace(latest, check=_REST, finding=left_out)
        done.add((latest.operator, latest.section))
        is_rest = len(done) < len(request.sections) * len(request.operators)
        return dataclasses.replace(request, done=frozenset(done)) if is_rest else None
    finally:
        receiver.close()
        _end(process)


def _end(process: Any) -> None:
    """End a process and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing is left, or it has not come to begin
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _death(exit_code: int | None) -> str:
    """Return how a process ended, and what the reason may be."""
    if exit_code is None or exit_code >= 0:
        return f"the process ended in it, with the exit code {exit_code}."
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return (
        f"the process died in it ({name}), which C++ code does that reads or writes outside of its tensors. Compiled "
        f"with the flag -DD500_CHECK_BOUNDS (flags = ['-DD500_CHECK_BOUNDS'] in the class), views say where."
    )


def _serve(sender: Connection, request: Request) -> None:
    """Run checks and tell what they find; the program of the process."""
    with contextlib.suppress(PermissionError):
        os.setsid()  # so that Ctrl-C reaches the parent alone, which ends this process with all that it has started
    os.dup2(2, 1)  # what operators write is no part of the command's output
    file = open_operator_file(request.path, request.given)
    for section in request.sections:
        for operator, attributes in request.operators:
            if (operator, section) in request.done:
                continue
            sender.send(Message(operator, section, _START))
            for check in _checks(request, file, section, operator, attributes):
                message = Message(operator, section, check.name)
                sender.send(message)
                sender.send(dataclasses.replace(message, finding=run_check(check)))
    sender.send(None)


def _checks(
    request: Request, file: OperatorFile, section: str, operator: str, attributes: Mapping[str, Any]
) -> list[Check]:
    """Return the checks of an operator in a section."""
    try:
        subject = Subject(file.open(operator, attributes), request.given, request.seed)
        if section == BY_ITSELF:
            return operator_checks(subject)
        against = request.against.get(section)
        return framework_checks(subject, section, device=request.device, against=against)
    except Exception as error:  # noqa: BLE001 - an author's code raises anything; the check raises it again
        return [Check(_START, _raising(error))]


def _raising(error: Exception) -> Callable[[], str]:
    def run() -> str:
        raise error

    return run
