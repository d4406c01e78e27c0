"""Schemes with a bug planted in them, each with the check that has to find it."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from deep500.distributed.communication import mix
from deep500.distributed.flat_buffers import Bucket
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.asynchronous_parameter_server import AsynchronousParameterServer
from deep500.distributed.schemes.consistent_neighbors import ConsistentNeighbors
from deep500.distributed.schemes.dpsgd import DPSGD
from deep500.distributed.schemes.gossip import Gossip
from deep500.distributed.schemes.hierarchical import Hierarchical
from deep500.distributed.schemes.local_sgd import LocalSGD
from deep500.distributed.schemes.one_bit import OneBit
from deep500.distributed.schemes.parameter_server import ParameterServer
from deep500.distributed.schemes.power_sgd import PowerSGD
from deep500.distributed.schemes.qsgd import QSGD
from deep500.distributed.schemes.stale_synchronous import StaleSynchronous
from deep500.distributed.schemes.top_k import TopK
from deep500.distributed.schemes.zero_1 import Zero1
from tests.conformance import scheme_checks as checks

#: ``check(make_scheme, ranks, base, framework)``.
Check = Callable[..., object]


class DroppedRoot(ParameterServer):
    """The fault of the published parameter server: the root's gradient does not count."""

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        if context.communicator.rank == self.root:
            bucket.array[...] = 0
        super().on_bucket(bucket, context)


class MissingDivision(AllReduce):
    """The sum in the place of the mean."""

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        context.communicator.allreduce(bucket.array)


class OwnMean(AllReduce):
    """A rank that updates with its own gradient: its replica parts from the others."""

    def after_backward(self, context: StepContext) -> None:
        context.wait()
        if context.communicator.rank == 1:
            next(iter(context.gradients)).array[:3] *= 1 + 1e-15


class Truncated(AllReduce):
    """The end of each bucket is not exchanged."""

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        context.mean_later(bucket.array[: max(1, bucket.array.size * 9 // 10)])


class DividedByGroups(Hierarchical):
    """Divides by the number of groups instead of ranks."""

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        super().on_bucket(bucket, context)
        bucket.array *= self.group_size or context.communicator.size


class KeptToItself(Zero1):
    """Gives the parts that it updates to nobody."""

    def after_update(self, context: StepContext) -> None:
        pass


class OwnsAll(Zero1):
    """Updates every parameter on every rank."""

    def bind(self, context: StepContext) -> None:
        super().bind(context)
        context.updated_names = frozenset(context.gradients.names)


class MixedAfterwards(DPSGD):
    """Models mixed after the update instead of before: it is another recurrence."""

    def after_backward(self, context: StepContext) -> None:
        pass

    def after_update(self, context: StepContext) -> None:
        super().after_backward(context)


class NeverMeets(DPSGD):
    """Models that are not mixed at all keep their mean, but ranks do not come together."""

    def after_backward(self, context: StepContext) -> None:
        pass


class Lopsided(DPSGD):
    """The weights of rank 0 do not add up to 1."""

    def after_backward(self, context: StepContext) -> None:
        super().after_backward(context)
        if context.communicator.rank == 0:
            for buffer in context.fetch_parameters():
                buffer.array *= 1.001
            context.feed_parameters()


class Stubborn(Gossip):
    """Its own model weighs more than that of the other one."""

    def after_update(self, context: StepContext) -> None:
        rank = context.communicator.rank
        partner = self.partner(context.updates_done, rank, context.communicator.size)
        if partner != rank:
            for buffer in context.fetch_parameters():
                mix(context.communicator, buffer.array, {rank: 0.6, partner: 0.4})
            context.feed_parameters()


class OwnForgotten(ConsistentNeighbors):
    """The own gradient does not count."""

    def after_backward(self, context: StepContext) -> None:
        for buffer in context.gradients:
            buffer.array[...] = 0
        super().after_backward(context)


def leaking(kind: Any) -> type:
    class LeakedResidual(kind):
        """One percent of what is kept is lost."""

        def after_backward(self, context: StepContext) -> None:
            super().after_backward(context)
            for residual in self.residuals.values():
                residual *= 0.99

    return LeakedResidual


class ToNearest(QSGD):
    """Rounds as usual: small values always vanish."""

    def encode(self, values: np.ndarray, stream: np.random.Generator) -> Any:
        norms, _ = super().encode(values, stream)
        share = np.abs(values) / np.repeat(norms, self.block)[: values.size]
        return norms, np.copysign(np.rint(share * self.levels), values).astype(np.int8)


class Shrunk(QSGD):
    """Returns two percent too little."""

    def decode(self, norms: np.ndarray, levels: np.ndarray) -> np.ndarray:
        return 0.98 * super().decode(norms, levels)


class DroppedGradient(AsynchronousParameterServer):
    """The server's second gradient does not count."""

    def after_backward(self, context: StepContext) -> None:
        super().after_backward(context)
        if context.communicator.rank == 0 and context.step == 1:
            for buffer in context.gradients:
                buffer.array[...] = 0


class CountedTwice(AsynchronousParameterServer):
    """The server updates twice with the last gradient of its own."""

    def after_update(self, context: StepContext) -> None:
        if context.communicator.rank == 0 and context.step == 3:
            context.update()
        super().after_update(context)


class Unlogged(AsynchronousParameterServer):
    """Something changes the gradients that the log does not have."""

    def after_backward(self, context: StepContext) -> None:
        for buffer in context.gradients:
            buffer.array *= 1 + 1e-9 * np.random.default_rng().normal(size=buffer.array.size)
        super().after_backward(context)


class Unbounded(StaleSynchronous):
    """Lets every rank go on."""

    def before_backward(self, context: StepContext) -> None:
        if context.step == 0 and context.communicator.rank == 1:
            time.sleep(0.5)  # so that the others are ahead for certain
        super().before_backward(context)

    def _may_go_on(self, rank: int) -> bool:
        return True


@dataclass(frozen=True)
class Bug:
    """A scheme with a bug, and what has to find it.

    Attributes:
        check: Fails.
        make: Makes the scheme.
        least: From how many ranks on the bug shows.
    """

    check: Check
    make: Callable[..., Scheme]
    least: int = 2


def _dpsgd(make: Callable[[], Scheme], ranks: int, base: str, framework: str) -> None:
    checks.check_dpsgd(checks.ring(ranks), make, ranks, base, framework)


#: By a name that says what is wrong.
BUGS: Mapping[str, Bug] = MappingProxyType(
    {
        "dropped_root": Bug(checks.check_consistent, DroppedRoot),
        "dropped_root_against_allreduce": Bug(checks.check_is_allreduce, DroppedRoot),
        "missing_division": Bug(checks.check_consistent, MissingDivision),
        "missing_division_in_float32": Bug(checks.check_consistent_in_float32, MissingDivision),
        "replica_of_other_bits": Bug(checks.check_consistent, OwnMean),
        "truncated_bucket": Bug(checks.check_consistent, Truncated),
        "divided_by_groups": Bug(checks.check_consistent, functools.partial(DividedByGroups, 2)),
        "part_not_given_back": Bug(checks.check_consistent, KeptToItself),
        "state_of_all_parameters": Bug(checks.check_state_in_parts, OwnsAll),
        "mixed_afterwards": Bug(_dpsgd, MixedAfterwards),
        "mean_not_kept": Bug(checks.check_mean_is_kept, Lopsided),
        "ranks_never_meet": Bug(checks.check_mean_is_kept, NeverMeets),
        "pairs_of_other_weights": Bug(checks.check_gossip, functools.partial(Stubborn, 5)),
        "averaged_too_late": Bug(functools.partial(checks.check_local_sgd, 2), functools.partial(LocalSGD, 3)),
        "averaged_every_other_step": Bug(checks.check_is_allreduce, functools.partial(LocalSGD, 2)),
        "own_gradient_forgotten": Bug(checks.check_is_the_printed, OwnForgotten),
        "models_averaged": Bug(checks.check_ranks_stay_apart, DPSGD),
        "leaked_residual_of_top_k": Bug(
            checks.check_nothing_is_lost, checks.derived(functools.partial(TopK, 0.02), leaking), 1
        ),
        "leaked_residual_of_one_bit": Bug(
            checks.check_nothing_is_lost, checks.derived(functools.partial(OneBit, 32), leaking), 1
        ),
        "leaked_residual_of_power_sgd": Bug(
            checks.check_nothing_is_lost, checks.derived(functools.partial(PowerSGD, 1), leaking), 1
        ),
        "rounded_to_nearest": Bug(checks.check_unbiased, functools.partial(ToNearest, 127, 64), 1),
        "shrunk": Bug(checks.check_unbiased, functools.partial(Shrunk, 127, 64), 1),
        "dropped_gradient": Bug(checks.check_no_gradient_is_lost, DroppedGradient, 1),
        "gradient_counted_twice": Bug(checks.check_no_gradient_is_lost, CountedTwice, 1),
        "log_without_all": Bug(functools.partial(checks.check_replay, None), Unlogged, 1),
        "bound_not_kept": Bug(functools.partial(checks.check_replay, 0), functools.partial(Unbounded, 0)),
    }
)
