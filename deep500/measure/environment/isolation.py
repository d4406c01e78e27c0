"""Checks whether a machine is quiet enough for measurements that shall be trusted."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import Deep500Error
from deep500.measure.environment.noise import NoiseInterval
from deep500.measure.environment.probe import UNAVAILABLE, Section
from deep500.measure.environment.system import UnreadableError, cpu_list

__all__ = ["IsolationCheck", "IsolationError", "IsolationVerdict", "check_isolation"]

# The limits are conventions, chosen so that an idle machine passes; no measurement stands behind their digits.
_STEAL_LIMIT = 0.01
_OTHERS_LIMIT = 0.05
_LOAD_BASE, _LOAD_PER_CPU = 1.0, 0.05


class IsolationVerdict(str, enum.Enum):
    """What a check found."""

    OK = "ok"
    FAILED = "failed"
    UNAVAILABLE = UNAVAILABLE  #: what it needs to know could not be read


@dataclass(frozen=True)
class IsolationCheck:
    """The outcome of one check.

    Attributes:
        name: What was checked.
        verdict: What was found.
        reason: Why, with the values.
        remedy: What to do about it.
    """

    name: str
    verdict: IsolationVerdict
    reason: str
    remedy: str

    def to_dict(self) -> dict[str, str]:
        """Return it for JSON."""
        return {"name": self.name, "verdict": self.verdict.value, "reason": self.reason, "remedy": self.remedy}


class IsolationError(Deep500Error):
    """A machine failed checks that strict measurements ask for.

    Attributes:
        failed: The checks that failed.
    """

    def __init__(self, failed: Iterable[IsolationCheck]):
        """Compose the message from the checks that failed."""
        self.failed = tuple(failed)
        details = "; ".join(f"{check.name}: {check.reason} (remedy: {check.remedy})" for check in self.failed)
        super().__init__(
            f"This machine fails {len(self.failed)} of the isolation checks, so strict measurements are refused. "
            f"{details}. Or measure without strict, and the record tells what failed."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it from the checks, not from the message, so that it survives the way out of a child process."""
        return type(self), (self.failed,)


class _Facts:
    """The record's values by their names; asking for one that could not be read raises its reason."""

    def __init__(self, sections: Mapping[str, Section], noise: NoiseInterval | None):
        self.sections = sections
        self.noise = noise

    def __getitem__(self, name: str) -> Any:
        section, _, key = name.partition(".")
        found = self.sections.get(section, Section())
        value = found.values.get(key, UNAVAILABLE)
        if value == UNAVAILABLE:
            reason = found.reasons.get(key) or found.reasons.get("") or "there is no such field"
            raise UnreadableError(f"{name} is unavailable: {reason}")
        return value


def check_isolation(sections: Mapping[str, Section], noise: NoiseInterval | None = None) -> tuple[IsolationCheck, ...]:
    """Check what a record tells of the machine.

    Args:
        sections: The sections of the record.
        noise: What happened while nothing was measured; without it, the load average and the steal since the
            machine's start are judged.
    """
    facts = _Facts(sections, noise)
    return tuple(_check(name, check, remedy, facts) for name, (check, remedy) in _CHECKS.items())


def _check(name: str, check: Callable[[_Facts], tuple[bool, str]], remedy: str, facts: _Facts) -> IsolationCheck:
    try:
        passed, reason = check(facts)
    except UnreadableError as error:
        return IsolationCheck(name, IsolationVerdict.UNAVAILABLE, str(error), remedy)
    return IsolationCheck(name, IsolationVerdict.OK if passed else IsolationVerdict.FAILED, reason, remedy)


def _governor(facts: _Facts) -> tuple[bool, str]:
    governors = facts["cpu.governor"]
    return governors == ["performance"], f"the frequency is governed by {', '.join(governors)}"


def _turbo(facts: _Facts) -> tuple[bool, str]:
    turbo = facts["cpu.turbo"]
    return not turbo, f"turbo is {'on: the frequency depends on heat and on other cores' if turbo else 'off'}"


def _smt(facts: _Facts) -> tuple[bool, str]:
    if not facts["cpu.smt_active"]:
        return True, "each core runs one thread"
    allowed = set(cpu_list(facts["process.affinity"]))
    shared = [threads for threads in facts["cpu.core_threads"] if len(allowed & set(cpu_list(threads))) > 1]
    if shared:
        return False, f"SMT is on, and the process may run on several threads of {len(shared)} cores"
    return True, "SMT is on, but the process may use only one thread of each core"


def _affinity(facts: _Facts) -> tuple[bool, str]:
    allowed, online = facts["process.affinity_count"], facts["cpu.threads"]
    if allowed < online or online == 1:
        return True, f"the process is bound to {allowed} of {online} CPUs"
    variables = facts["process.thread_variables"]
    binding = variables.get("OMP_PROC_BIND", "false").lower() not in ("false", "0", "")
    bound = [name for name in ("KMP_AFFINITY", "GOMP_CPU_AFFINITY") if variables.get(name)]
    if binding or bound:
        return True, f"OpenMP binds its threads ({', '.join(bound) or 'OMP_PROC_BIND'})"
    return False, f"the process may be moved between all {online} CPUs"


def _cpu_quota(facts: _Facts) -> tuple[bool, str]:
    quota, allowed = facts["process.cpu_quota"], facts["process.affinity_count"]
    if quota is None or quota >= allowed:
        return True, f"no quota below the {allowed} CPUs that may be used"
    return False, f"the control group may use {quota:g} CPUs' time on {allowed} CPUs, and is stopped when it is used up"


def _load(facts: _Facts) -> tuple[bool, str]:
    if facts.noise is not None and facts.noise.others_share is not None:
        share = facts.noise.others_share
        text = f"others used {share:.1%} of the CPU time in {facts.noise.elapsed_s:.2g} s (limit {_OTHERS_LIMIT:.0%})"
        return share <= _OTHERS_LIMIT, text
    load, limit = facts["load.average_1min"], _LOAD_BASE + _LOAD_PER_CPU * facts["cpu.threads"]
    return load <= limit, f"the load average of a minute is {load:g} (limit {limit:g})"


def _steal(facts: _Facts) -> tuple[bool, str]:
    if facts.noise is not None and facts.noise.steal_share is not None:
        share, when = facts.noise.steal_share, f"in {facts.noise.elapsed_s:.2g} s"
    else:
        share, when = facts["load.steal_share"], "since its start"
    return share <= _STEAL_LIMIT, f"a hypervisor took {share:.2%} of the CPU time {when} (limit {_STEAL_LIMIT:.0%})"


def _swap(facts: _Facts) -> tuple[bool, str]:
    used = facts["memory.swap_used_bytes"]
    if not used:
        return True, "no swap is in use" if facts["memory.swap_total_bytes"] else "there is no swap"
    return (
        False,
        f"{used / 2**20:.0f} MiB are swapped out, {facts['memory.process_swapped_bytes']} bytes of this process",
    )


_CPU = "/sys/devices/system/cpu"

_CHECKS: dict[str, tuple[Callable[[_Facts], tuple[bool, str]], str]] = {
    "governor": (_governor, "cpupower frequency-set --governor performance (as root)"),
    "turbo": (_turbo, f"echo 1 > {_CPU}/intel_pstate/no_turbo, or echo 0 > {_CPU}/cpufreq/boost (as root)"),
    "smt": (_smt, f"start with taskset on one thread of each core, or echo off > {_CPU}/smt/control (as root)"),
    "affinity": (_affinity, "start with taskset --cpu-list, numactl or OMP_PROC_BIND=close"),
    "cpu_quota": (_cpu_quota, "give the container whole CPUs (--cpuset-cpus) in the place of a quota"),
    "load": (_load, "end what else runs, or measure at another time"),
    "steal": (_steal, "use a dedicated machine or a virtual machine with CPUs of its own"),
    "swap": (_swap, "free memory, then swapoff --all (as root)"),
}
