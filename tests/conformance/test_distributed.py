"""Every scheme against its oracle on ranks of MPI: with every base optimizer, framework and number of ranks.

The checks are those of test_schemes.py and test_scheme_servers.py. Ranks are started once for all cases that are wanted
in this run; a case that hangs is one that did not end in time.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import psutil
import pytest

from deep500.distributed.catalogue import SCHEMES
from deep500.frameworks import FRAMEWORKS
from tests.conformance.scheme_launcher import LAUNCHER, Outcome, run_cases
from tests.mpi.accidents import ACCIDENTS
from tests.mpi.scheme_cases import CASES, CHECKS, Case

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not Path(LAUNCHER).exists(), reason="mpi4py or mpiexec is missing"
)

#: Frameworks that the same processes have: TensorFlow takes long to start.
TOGETHER = {"reference": "light", "pytorch": "light", "tensorflow": "tensorflow"}


class Launches:
    """What came of the cases of this run; those of one number of ranks are run when the first is asked for."""

    def __init__(self, wanted: list[Case], folder: Path) -> None:
        self._wanted = wanted
        self._folder = folder
        self._outcomes: dict[tuple[int, str], dict[str, Outcome]] = {}

    def outcome_of(self, case: Case) -> Outcome:
        key = (case.ranks, TOGETHER[case.framework])
        if key not in self._outcomes:
            together = [other.name for other in self._wanted if (other.ranks, TOGETHER[other.framework]) == key]
            folder = self._folder / "-".join(map(str, key))
            folder.mkdir()
            self._outcomes[key] = {}
            self._outcomes[key] = run_cases(case.ranks, together, folder)
        return self._outcomes[key].get(case.name, Outcome("The case was not run: too many others ended all ranks."))


@pytest.fixture(scope="session")
def launches(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Launches:
    callspecs = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = [spec.params["scheme_case"] for spec in callspecs if spec and "scheme_case" in spec.params]
    installed = [case for case in wanted if _is_installed(case.framework)]
    return Launches(installed, tmp_path_factory.mktemp("launches"))


def _is_installed(framework: str) -> bool:
    return bool(FRAMEWORKS.get(framework).REQUIREMENT.is_installed())


def _parameter(case: Case) -> object:
    return pytest.param(case, id=case.name, marks=[] if case.is_default else [pytest.mark.slow])


@pytest.mark.timeout(3600)  # the first one waits for all; each case has a limit of its own
@pytest.mark.parametrize("scheme_case", [_parameter(case) for case in CASES.values()])
def test_a_scheme_holds_under_mpi(scheme_case: Case, launches: Launches) -> None:
    if not _is_installed(scheme_case.framework):
        pytest.skip(f"{scheme_case.framework} is not installed")
    outcome = launches.outcome_of(scheme_case)
    assert not outcome.why, outcome.why


def test_every_scheme_is_checked_here() -> None:
    assert {check.scheme for check in CHECKS} == set(SCHEMES.names())


@pytest.mark.slow
def test_a_case_that_fails_ends_or_hangs_is_named(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    outcomes = run_cases(2, list(ACCIDENTS), tmp_path, module="tests.mpi.accidents", seconds_a_case=10)
    assert set(psutil.Process().children(recursive=True)) <= before
    assert list(outcomes) == list(ACCIDENTS)
    wrong = {name: outcome.why for name, outcome in outcomes.items() if outcome.why}
    assert set(wrong) == {"fails", "ends", "hangs"}
    assert "planted on purpose" in wrong["fails"]
    assert "one rank fails" in wrong["ends"]
    assert "no case ended within 10 s" in wrong["hangs"]
