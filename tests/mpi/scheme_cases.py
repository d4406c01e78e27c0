"""Which checks of which scheme are done on ranks of MPI: each with every base optimizer, framework and number of ranks.

The list says nothing about processes; tests/mpi/scheme_ranks.py does the checks, tests/conformance/test_distributed.py
starts it and reads what came of them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from deep500.distributed.scheme import Scheme
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.asynchronous_parameter_server import AsynchronousParameterServer
from deep500.distributed.schemes.consistent_neighbors import ConsistentNeighbors
from deep500.distributed.schemes.dpsgd import DPSGD
from deep500.distributed.schemes.gossip import Gossip
from deep500.distributed.schemes.hierarchical import Hierarchical
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.distributed.schemes.native import Native
from deep500.distributed.schemes.one_bit import OneBit
from deep500.distributed.schemes.parameter_server import ParameterServer
from deep500.distributed.schemes.power_sgd import PowerSGD
from deep500.distributed.schemes.qsgd import QSGD
from deep500.distributed.schemes.stale_synchronous import StaleSynchronous
from deep500.distributed.schemes.top_k import TopK
from deep500.distributed.schemes.zero_1 import Zero1
from tests.conformance import scheme_checks as checks
from tests.conformance.scheme_bugs import BUGS, Bug
from tests.conformance.scheme_oracles import BASES

FRAMEWORKS = ("reference", "pytorch", "tensorflow")
RANKS = (1, 2, 3, 4)

#: Numbers of ranks and frameworks with which each check is run each time, in turn with every base optimizer.
DEFAULT = {2: "reference", 3: "pytorch"}

#: Bugs that are planted each time.
DEFAULT_BUGS = ("dropped_root", "missing_division", "mixed_afterwards", "leaked_residual_of_top_k", "dropped_gradient")

#: Adam makes a base optimizer whose update is not linear: averages of models are not averages of gradients.
LINEAR = ("SGD", "Momentum")

#: A check of a scheme: ``check(make_scheme, ranks, base, framework)``.
Check = Callable[..., object]


@dataclass(frozen=True)
class SchemeCheck:
    """A check that a scheme must pass.

    Attributes:
        scheme: Its name.
        name: What is checked.
        check: Checks it.
        make: Makes the scheme.
        ranks: For which numbers of ranks.
        bases: For which base optimizers.
        frameworks: Under which frameworks.
    """

    scheme: str
    name: str
    check: Check
    make: Callable[..., Scheme]
    ranks: tuple[int, ...] = RANKS
    bases: tuple[str, ...] = tuple(BASES)
    frameworks: tuple[str, ...] = FRAMEWORKS


def _last_root_is_allreduce(make: Callable[[int], Scheme], ranks: int, base: str, framework: str) -> None:
    checks.check_is_allreduce(functools.partial(make, ranks - 1), ranks, base, framework)


def _ring(make: Callable[[], Scheme], ranks: int, base: str, framework: str) -> None:
    checks.check_dpsgd(checks.ring(ranks), make, ranks, base, framework)


def _consistent(scheme: str, make: Callable[[], Scheme]) -> list[SchemeCheck]:
    return [
        SchemeCheck(scheme, "one_process", checks.check_consistent, make),
        SchemeCheck(scheme, "one_process_in_float32", checks.check_consistent_in_float32, make),
    ]


def _server(scheme: str, variant: str, make: Callable[..., Scheme], bound: int | None) -> list[SchemeCheck]:
    return [
        SchemeCheck(scheme, f"replay{variant}", functools.partial(checks.check_replay, bound), make),
        SchemeCheck(scheme, f"no_gradient_lost{variant}", checks.check_no_gradient_is_lost, make),
    ]


CHECKS: list[SchemeCheck] = [
    *_consistent("allreduce", AllReduce),
    *_consistent("parameter_server", ParameterServer),
    SchemeCheck("parameter_server", "is_allreduce", _last_root_is_allreduce, ParameterServer),
    SchemeCheck("native", "one_process", checks.check_consistent, Native, frameworks=("pytorch",)),
    *_consistent("zero_1", Zero1),
    SchemeCheck("zero_1", "state_in_parts", checks.check_state_in_parts, Zero1),
    *_consistent("hierarchical", functools.partial(Hierarchical, 2)),
    SchemeCheck("hierarchical", "one_process_on_one_machine", checks.check_consistent, Hierarchical),
    SchemeCheck("dpsgd", "recurrence_of_the_ring", _ring, DPSGD),
    SchemeCheck(
        "dpsgd",
        "recurrence_of_the_torus",
        functools.partial(checks.check_dpsgd, checks.TORUS),
        functools.partial(DPSGD, "torus"),
        (4,),
    ),
    SchemeCheck(
        "dpsgd",
        "recurrence_of_the_exponential_graph",
        functools.partial(checks.check_dpsgd, checks.ALL),
        functools.partial(DPSGD, "exponential"),
        (4,),
    ),
    SchemeCheck("dpsgd", "mean_is_kept", checks.check_mean_is_kept, DPSGD),
    SchemeCheck("gossip", "recurrence", checks.check_gossip, functools.partial(Gossip, 5)),
    SchemeCheck("gossip", "mean_is_kept", checks.check_mean_is_kept, Gossip),
    SchemeCheck(
        "local_sgd", "recurrence", functools.partial(checks.check_local_sgd, 2), functools.partial(LocalSGD, 2)
    ),
    SchemeCheck(
        "local_sgd",
        "recurrence_of_period_1",
        functools.partial(checks.check_local_sgd, 1),
        functools.partial(LocalSGD, 1),
    ),
    SchemeCheck(
        "local_sgd",
        "period_1_is_allreduce",
        checks.check_is_allreduce,
        functools.partial(LocalSGD, 1),
        RANKS,
        LINEAR,
    ),
    SchemeCheck("local_sgd", "mean_is_kept", checks.check_mean_is_kept, LocalSGD),
    SchemeCheck("consistent_neighbors", "is_the_printed", checks.check_is_the_printed, ConsistentNeighbors),
    SchemeCheck("consistent_neighbors", "one_process", checks.check_every_rank, ConsistentNeighbors, (1, 2, 3)),
    SchemeCheck("consistent_neighbors", "ranks_stay_apart", checks.check_ranks_stay_apart, ConsistentNeighbors),
    SchemeCheck("top_k", "nothing_is_lost", checks.check_nothing_is_lost, functools.partial(TopK, 0.02)),
    SchemeCheck("top_k", "nothing_is_lost_when_dense", checks.check_nothing_is_lost, functools.partial(TopK, 0.7)),
    SchemeCheck("top_k", "all_is_one_process", checks.check_consistent, functools.partial(TopK, 1.0)),
    SchemeCheck("one_bit", "nothing_is_lost", checks.check_nothing_is_lost, functools.partial(OneBit, 32)),
    SchemeCheck("power_sgd", "nothing_is_lost", checks.check_nothing_is_lost, functools.partial(PowerSGD, 1)),
    SchemeCheck("power_sgd", "full_is_one_process", checks.check_consistent, functools.partial(PowerSGD, 1000)),
    SchemeCheck("qsgd", "unbiased", checks.check_unbiased, functools.partial(QSGD, 127, 64)),
    SchemeCheck("qsgd", "learns_as_allreduce", checks.check_learns_as_allreduce, functools.partial(QSGD, 127, 64)),
    *_server("asynchronous_parameter_server", "", AsynchronousParameterServer, None),
    *_server("stale_synchronous", "_of_bound_0", functools.partial(StaleSynchronous, 0), 0),
    *_server("stale_synchronous", "_of_bound_1", functools.partial(StaleSynchronous, 1), 1),
]


@dataclass(frozen=True)
class Case:
    """One check on a number of ranks, with a base optimizer, under a framework.

    Attributes:
        name: Unique, and what the test is called.
        framework: Of the executors.
        ranks: How many.
        is_default: Whether it is in the tests that are run each time.
        run: Checks it, on each rank.
    """

    name: str
    framework: str
    ranks: int
    is_default: bool
    run: Callable[[], object]


def _scheme_cases() -> Iterator[Case]:
    for number, check in enumerate(CHECKS):
        for ranks, framework, base in itertools.product(check.ranks, check.frameworks, check.bases):
            turn = (number + ranks) % len(check.bases)
            is_default = DEFAULT.get(ranks) == framework and base == check.bases[turn]
            run = functools.partial(check.check, check.make, ranks, base, framework)
            yield Case(f"{check.scheme}-{check.name}-{base}-{framework}-{ranks}", framework, ranks, is_default, run)


def _is_found(bug: Bug, ranks: int, framework: str) -> None:
    with pytest.raises(AssertionError):
        bug.check(bug.make, ranks, "Momentum", framework)


def _bug_cases() -> Iterator[Case]:
    for name, bug in BUGS.items():
        for ranks, framework in itertools.product(RANKS[bug.least - 1 :], FRAMEWORKS):
            run = functools.partial(_is_found, bug, ranks, framework)
            is_default = name in DEFAULT_BUGS and ranks == 2 and framework == "reference"
            yield Case(f"bug-{name}-Momentum-{framework}-{ranks}", framework, ranks, is_default, run)


#: All cases by name.
CASES: dict[str, Case] = {case.name: case for case in [*_scheme_cases(), *_bug_cases()]}
