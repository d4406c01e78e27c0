"""A plug-in of pytest: tests say how many GPUs they need, and what is lost where there are fewer is told.

It is there in every session of pytest in whose environment Deep500 is installed (``-p no:deep500_gpus`` keeps it out;
where plug-ins are not loaded by themselves, ``-p deep500_gpus`` brings it, and the name of this module does only where
the plug-in is not registered), and does nothing until a test has the mark ``gpus``, takes the fixture ``gpus``, or an
option of it is given.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from deep500.core.errors import FileWriteError
from deep500.core.files import check_writable, write_atomically
from deep500.core.texts import shown_path
from deep500.fleet.shard.gpu_marks import declared_gpus
from deep500.fleet.shard.gpu_use import USED_FILE_VARIABLE, Gpus, GpuUse, lack_of_gpus, used_by_processes
from deep500.fleet.shard.lost_coverage import PROPERTIES, LostCoverage
from deep500.fleet.shard.visible_gpus import VISIBILITY_VARIABLES, GivenGpus, visible_gpus

__all__: list[str] = []

_CACHE = "deep500/gpu_test_durations"

#: Ends of a session after which tests may be unknown.
_ENDS = {
    int(pytest.ExitCode.INTERRUPTED): "the session was interrupted",
    int(pytest.ExitCode.INTERNAL_ERROR): "the session ended with an internal error",
    int(pytest.ExitCode.USAGE_ERROR): "the session ended with a usage error",
}


class _Watched:
    """What is noted of a test while it runs."""

    def __init__(self, gpus: Gpus, watch: Any) -> None:
        self.gpus = gpus
        self.has_fixture = False
        self.watch = watch
        self.close = contextlib.ExitStack()
        folder = self.close.enter_context(tempfile.TemporaryDirectory(prefix="deep500-gpus-"))
        self.file = os.path.join(folder, "used")

    def set_variable(self, name: str, value: str) -> None:
        """Set a variable of the process until the test has ended."""
        self.close.callback(_restore, name, os.environ.get(name))
        os.environ[name] = value


class _Session:
    """The plug-in's memory of a session."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.coverage = LostCoverage()
        self.held: set[str] = set()
        self._given: GivenGpus | None = None

    @property
    def given(self) -> GivenGpus:
        """The GPUs that tests may use; looked for when first asked."""
        if self._given is None:
            limit = self.config.getoption("max_gpus")
            if limit is None:
                self._given = visible_gpus()
            else:
                self._given = GivenGpus(limit, "--max-gpus", tuple(map(str, range(limit))))
        return self._given

    @property
    def is_worker(self) -> bool:
        """Whether another process of pytest, xdist's, leads."""
        return hasattr(self.config, "workerinput")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a report, of this process or of a worker."""
        self.coverage.observe(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected: its tests are not known."""
        if report.failed and report.nodeid not in self.coverage.not_collected:
            self.coverage.not_collected.append(report.nodeid)


_SESSION = pytest.StashKey[_Session]()
_DECLARED = pytest.StashKey["int | None"]()
_MISTAKE = pytest.StashKey[pytest.UsageError]()
_WATCHED = pytest.StashKey[_Watched]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("gpus", "GPUs that tests need (deep500)")
    group.addoption(
        "--max-gpus",
        type=_number,
        metavar="N",
        help="Skip tests with the mark gpus(n) for n > N, and list them as lost coverage. By default N is what is "
        f"visible: the entries of {', else '.join(VISIBILITY_VARIABLES)}, else what nvidia-smi lists, else what the "
        "kernel knows of AMD's.",
    )
    group.addoption("--lost-coverage", metavar="FILE", help="Write what was lost for want of GPUs: a JSON file.")
    group.addoption(
        "--gpu-durations",
        metavar="FILE",
        help="Seconds of each test, for the list of what is lost: a JSON object by node id, as pytest-split's "
        ".test_durations. Without it, those of this folder's earlier runs.",
    )
    group.addoption(
        "--limit-gpus",
        action="store_true",
        help="While a test with the mark runs, show its new processes no more GPUs than it declares.",
    )
    group.addoption(
        "--no-gpu-watch",
        action="store_true",
        help="Do not look at the processes of tests with the mark, nor ask the driver what they hold.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and check the options."""
    config.addinivalue_line(
        "markers", "gpus(n): the test needs n GPUs; skipped, and listed as lost coverage, where fewer are given"
    )
    session = _Session(config)
    config.stash[_SESSION] = session
    if session.is_worker:
        return
    config.pluginmanager.register(session, "deep500_gpus_reports")
    path = config.getoption("lost_coverage")
    if path is not None:
        try:
            check_writable(path, "list of lost coverage")
        except FileWriteError as error:
            raise pytest.UsageError(f"--lost-coverage: {error}") from error
    path = config.getoption("gpu_durations")
    if path is not None:
        session.coverage.durations = _durations(path)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note what each test declares, after all that may add marks or leave tests out.

    A wrong mark ends the session; a worker of xdist cannot end it, so there it is an error of the test.
    """
    for item in items:
        try:
            declared = declared_gpus(item)
        except pytest.UsageError as error:
            if not config.stash[_SESSION].is_worker:
                raise
            item.stash[_MISTAKE] = error
            continue
        item.stash[_DECLARED] = declared
        if declared is not None:
            item.user_properties.append(("gpus_declared", declared))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Where tests are only collected, note what would be lost."""
    config = session.config
    own = config.stash[_SESSION]
    if config.getoption("collectonly") and (
        config.getoption("max_gpus") is not None or config.getoption("lost_coverage") is not None
    ):
        for item in session.items:
            own.coverage.expect(item.nodeid, item.stash.get(_DECLARED, None), own.given.count)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Skip a test that needs more GPUs than are given, unless it is skipped for another reason; else watch it."""
    if _MISTAKE in item.stash:
        raise item.stash[_MISTAKE]
    declared = item.stash.get(_DECLARED, None)
    # What an earlier run of the same test left, where failed tests are run again.
    item.user_properties[:] = [pair for pair in item.user_properties if pair[0] not in PROPERTIES[1:]]
    if declared is None:
        return (yield)
    given = item.config.stash[_SESSION].given.count
    reason = None
    if declared is not None and declared > given and not _is_skipped_by_unittest(item):
        reason = lack_of_gpus(declared, given)
        item.add_marker(pytest.mark.skip(reason=reason))  # behind its own, of which the first that holds counts
    else:
        _begin(item)
    try:
        return (yield)
    except pytest.skip.Exception as skipped:
        if reason is not None and skipped.msg == reason:
            item.user_properties.extend([("gpus_needed", declared), ("gpus_given", given)])
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note what a test used, before the last report of it is made."""
    try:
        return (yield)
    finally:
        watched = item.stash.get(_WATCHED, None)
        if watched is not None:
            del item.stash[_WATCHED]
            _end(item, watched)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
    """Write the list, and keep how long tests took."""
    config = session.config
    own = config.stash[_SESSION]
    if own.is_worker:
        return
    if not own.coverage.not_collected:
        early = session.shouldfail or session.shouldstop  # such as "stopping after 1 failures"
        own.coverage.stopped = _ENDS.get(int(exitstatus)) or (str(early) if early else None)
    cache = getattr(config, "cache", None)
    if cache is not None and own.coverage.tests:
        before = cache.get(_CACHE, {})
        own.coverage.durations = {**before, **own.coverage.durations}
        measured = own.coverage.measured()
        if measured:
            cache.set(_CACHE, {**before, **measured})
    path = config.getoption("lost_coverage")
    if path is not None:
        given = own.given
        write_atomically(path, own.coverage.json(given.count, given.source), "list of lost coverage")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tell what was lost, and which tests contradict their marks."""
    own = config.stash[_SESSION]
    if not own.coverage.tests and config.getoption("max_gpus") is None:
        return
    if not own.coverage.tests and own.coverage.incomplete is not None:
        return  # pytest has told why nothing is known, and the file says so too
    lines = list(own.coverage.lines(own.given.count, own.given.source))
    if lines:
        terminalreporter.section("coverage lost for want of GPUs" if own.coverage.lost else "GPUs", yellow=True)
        for line in lines:
            terminalreporter.write_line(line)
    elif own.coverage.tests:
        terminalreporter.write_line(f"No coverage is lost with --max-gpus {own.given.count}.")


@pytest.fixture
def gpus(request: pytest.FixtureRequest) -> Gpus:
    """The GPUs that the test may use: gpus.take(2) gives the indices of two, and records that they were taken."""
    watched = request.node.stash.get(_WATCHED, None) or _begin(request.node)
    watched.has_fixture = True
    return watched.gpus


def _begin(item: pytest.Item) -> _Watched:
    """Watch a test from now on."""
    declared = item.stash.get(_DECLARED, None)
    given = item.config.stash[_SESSION].given.count

    def lacking(needed: int) -> NoReturn:
        item.user_properties.extend([("gpus_needed", needed), ("gpus_given", given)])
        pytest.skip(lack_of_gpus(needed, given))

    watch = None
    if not item.config.getoption("no_gpu_watch"):
        from deep500.fleet.shard.gpu_watch import GpuWatch  # loads psutil

        watch = GpuWatch()
    watched = _Watched(Gpus(given, declared, lacking), watch)
    watched.set_variable(USED_FILE_VARIABLE, watched.file)
    if declared is not None and item.config.getoption("limit_gpus"):
        names = visible_gpus().names or item.config.stash[_SESSION].given.names
        for name in VISIBILITY_VARIABLES[:2]:
            watched.set_variable(name, ",".join(names[:declared]))
    item.stash[_WATCHED] = watched
    if watch is not None:
        watch.start()
    return watched


def _restore(name: str, value: str | None) -> None:
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


def _end(item: pytest.Item, watched: _Watched) -> None:
    with watched.close:
        if watched.watch is not None:
            watched.watch.stop()
        use = _use(item.config.stash[_SESSION], watched)
    is_lost = any(name == "gpus_given" for name, _ in item.user_properties)
    if use is not None and not is_lost:
        source = f"{use.source}, or more" if use.may_be_more else use.source
        item.user_properties.extend([("gpus_used", use.count), ("gpus_used_by", source)])


def _use(session: _Session, watched: _Watched) -> GpuUse | None:
    """Return the greatest number that anything saw; ``None`` where nothing saw anything, which is not zero."""
    uses = [GpuUse(len(watched.gpus.taken), "fixture")] if watched.has_fixture else []
    said = used_by_processes(watched.file)
    if said:
        uses.append(GpuUse(len(said), "said"))
    if watched.watch is not None:
        own = {device for device, is_own in watched.watch.devices if is_own}
        # What this process held before stays held, and whether this test used it cannot be told.
        new = {device for device, is_own in watched.watch.devices if not is_own} | (own - session.held)
        if new:
            uses.append(GpuUse(len(new), "driver", may_be_more=bool(session.held - new)))
        session.held |= own
        if watched.watch.ranks:
            uses.append(GpuUse(len(watched.watch.ranks), "ranks"))
    return max(uses, key=lambda use: use.count, default=None)


def _is_skipped_by_unittest(item: pytest.Item) -> bool:
    places = (getattr(item, "obj", None), getattr(item, "cls", None))
    return any(getattr(place, "__unittest_skip__", False) for place in places)


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 999999")
    return int(text)


def _durations(path: str) -> dict[str, float]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"--gpu-durations: {shown_path(path)} cannot be read: {error}") from error
    if not isinstance(content, dict) or not all(isinstance(v, (int, float)) for v in content.values()):
        raise pytest.UsageError(f"--gpu-durations: {shown_path(path)} is no object of seconds by node id.")
    return {str(name): float(seconds) for name, seconds in content.items()}
