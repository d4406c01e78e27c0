"""A recipe on several ranks: who they are, what they must have in common, and what they exchange."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deep500.core.errors import CommunicationError, RecipeError
from deep500.core.event import Event
from deep500.core.texts import shown
from deep500.datasets.dataset import Dataset
from deep500.distributed.agreement import CommunicatorRanks
from deep500.distributed.catalogue import SCHEMES
from deep500.distributed.communicator import Communicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.launch_environment import create_communicator, detect
from deep500.distributed.ledger import LedgerSnapshot
from deep500.distributed.metrics.communication_volume import CommunicationVolume
from deep500.distributed.rank_options import RankOptions
from deep500.distributed.samplers._rank_sampler import RankSampler
from deep500.distributed.scheme import Scheme
from deep500.distributed.surviving_communicator import SurvivingCommunicator
from deep500.recipe._rank_losses import RankLosses
from deep500.recipe.recipe import Recipe
from deep500.recipe.resolve import call_with_arguments
from deep500.training.optimizer import Optimizer
from deep500.training.sampler import Sampler

__all__ = ["DEFAULT_SCHEME", "RankReport", "RankSetup", "find_scheme", "set_up_ranks"]

#: The scheme of a recipe that names none and is started on several ranks.
DEFAULT_SCHEME = "allreduce"

#: How many keys a message about different recipes names.
_MOST_KEYS = 4


@dataclass(frozen=True)
class RankSetup:
    """The ranks of one run of a recipe.

    Attributes:
        communicator: What carries the messages.
        ranks: How they agree.
        options: Settings of the machine.
        losses: The ranks that were lost on the way.
    """

    communicator: Communicator
    ranks: CommunicatorRanks
    options: RankOptions
    losses: RankLosses = field(default_factory=RankLosses)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.communicator.size

    @property
    def survives(self) -> bool:
        """Whether the other ranks go on when one fails."""
        return isinstance(self.communicator, SurvivingCommunicator)

    @property
    def may_become_first(self) -> bool:
        """Whether this is rank 0, or may have to take its place."""
        return self.survives or self.ranks.is_first

    def check_minibatch(self, recipe: Recipe) -> None:
        """Check that the recipe's minibatch can be dealt out to all ranks evenly, unless some are lost already.

        Raises:
            RecipeError: It cannot.
        """
        if not (isinstance(self.communicator, SurvivingCommunicator) and self.communicator.lost):
            self.share_of(recipe["batch_size"])

    def share_of(self, batch_size: int) -> int:
        """Return the number of samples of a minibatch that are one rank's.

        Raises:
            RecipeError: The minibatch cannot be dealt out evenly.
        """
        share, rest = divmod(batch_size, self.size)
        if rest:
            near = [self.size * count for count in (share, share + 1) if count]
            raise RecipeError(
                f"'batch_size' is {batch_size}, the minibatch of all {self.size} ranks together; accepted is a "
                f"multiple of {self.size}, such as {' or '.join(map(str, near))}."
            )
        return share

    def check_recipe(self, recipe: Recipe) -> None:
        """Check that all ranks were given this recipe with this configuration.

        Raises:
            RecipeError: They were not; the message names the ranks and what differs.
        """
        hashes = self.ranks.gathered(recipe.configuration_hash)
        if len(set(hashes)) == 1:
            return
        descriptions = self.ranks.gathered(recipe.description)
        first = _flat(descriptions[0])
        differences = []
        for rank, description in enumerate(descriptions):
            here = _flat(description)
            keys = [key for key in dict.fromkeys([*first, *here]) if first.get(key) != here.get(key)]
            told = [f"{key} is {shown(here.get(key))}, on rank 0 {shown(first.get(key))}" for key in keys[:_MOST_KEYS]]
            told += [f"{len(keys) - _MOST_KEYS} more keys"] if len(keys) > _MOST_KEYS else []
            differences += [f"on rank {rank} {', '.join(told)}"] if told else []
        raise RecipeError(
            f"The ranks were given different configurations: {'; '.join(differences) or 'what is fixed differs'}. Give "
            f"every rank the same recipe and the same changes."
        )

    def check_data(self, train_set: Dataset, test_set: Dataset) -> None:
        """Check that all ranks have data sets of the same size.

        Raises:
            RecipeError: They have not; the message names the ranks.
        """
        found = self.ranks.gathered([len(train_set), len(test_set)])
        others = [rank for rank, sizes in enumerate(found) if sizes != found[0]]
        if others:
            told = "; ".join(
                f"rank {rank} has {found[rank][0]} samples to train and {found[rank][1]} to test"
                for rank in [0, *others]
            )
            raise RecipeError(
                f"The ranks have data sets of different sizes: {told}. Give every rank the same files; each takes its "
                f"part of the whole data set by itself."
            )

    def check_precision(self, recipe: Recipe) -> None:
        """Check that gradients can be exchanged in the recipe's precision.

        Raises:
            RecipeError: They cannot.
        """
        if recipe.get("precision", "float32") == "float16":
            raise RecipeError(
                "'precision' is 'float16', whose scaled losses ranks cannot exchange gradients of. Accepted with "
                "several ranks are 'float32' and 'bfloat16', which needs no scaling."
            )

    def wrapped(self, optimizer: Optimizer, recipe: Recipe) -> DistributedOptimizer:
        """Return the optimizer on all ranks, with the recipe's scheme.

        Raises:
            RecipeError: ``distributed`` is no scheme, or takes no such arguments.
            TrainingError: The optimizer cannot be used on several ranks.
        """
        kind = find_scheme(recipe.get("distributed", DEFAULT_SCHEME))
        if self.survives and issubclass(kind, DistributedOptimizer) and kind.step is not DistributedOptimizer.step:
            raise RecipeError(
                f"'distributed' is {kind.__name__}, which has a step of its own, and ranks that are left when one "
                f"fails would not repeat it together. Accepted with on_failure='shrink' are schemes, such as "
                f"{DEFAULT_SCHEME!r}; or on_failure='abort'."
            )
        arguments = recipe.arguments("distributed")
        if issubclass(kind, DistributedOptimizer):
            made = call_with_arguments(kind, "distributed", (optimizer, self.communicator), arguments)
        else:
            scheme = call_with_arguments(kind, "distributed", (), arguments)
            made = DistributedOptimizer(optimizer, self.communicator, scheme)
        assert isinstance(made, DistributedOptimizer)
        self.ranks.follow(made)
        return made

    def check_sampler(self, sampler: Any) -> None:
        """Check that the samples of the training set can be dealt out anew where that may be needed.

        Args:
            sampler: The class of the sampler that serves it.

        Raises:
            RecipeError: They cannot.
        """
        if self.survives and issubclass(sampler, RankSampler):
            raise RecipeError(
                f"'train_sampler' is {sampler.__name__}, whose samples cannot be dealt out anew in the middle of an "
                f"epoch. Accepted with on_failure='shrink' are samplers of one process, such as 'shuffle', which are "
                f"dealt out to the ranks; or on_failure='abort'."
            )

    def events_here(self, events: Sequence[Event], optimizer: Optimizer, sampler: Sampler) -> list[Event]:
        """Return the events of this rank: those that do nothing but report are rank 0's, and one follows lost ranks.

        Args:
            events: Those of the recipe.
            optimizer: The optimizer on all ranks.
            sampler: Serves the training set.
        """
        own = [event for event in events if self.ranks.is_first or not getattr(event, "reports", False)]
        if self.survives and self.size > 1:
            assert isinstance(optimizer, DistributedOptimizer)
            reports = [type(event).__name__ for event in events if getattr(event, "reports", False)]
            self.losses.follow(optimizer, sampler, reports)
        return [*own, self.losses]


@dataclass
class RankReport:
    """What the result says of the ranks.

    Attributes:
        setup: The ranks; ``None`` for a run that is no rank.
        recipe: What is run.
    """

    setup: RankSetup | None
    recipe: Recipe

    def __post_init__(self) -> None:
        """Begin to count what is exchanged."""
        self._volume = None if self.setup is None else CommunicationVolume(self.setup.communicator)
        if self._volume is not None:
            self._volume.begin(None)

    @property
    def survives(self) -> bool:
        """Whether the other ranks go on when one fails."""
        return self.setup is not None and self.setup.survives

    def content(self, *, together: bool) -> dict[str, Any] | None:
        """Return the result's part, on all ranks together; or alone, where others may have failed."""
        if self.setup is None or self._volume is None:
            return None
        communicator, ranks = self.setup.communicator, self.setup.ranks
        self._volume.end(None)
        own = _bytes_of(self._volume.volume)
        self._volume.begin(None)
        found: list[Any]
        if together:
            found = ranks.gathered(own)
        else:
            found = [own if rank == ranks.rank else dict.fromkeys(own) for rank in range(ranks.size)]
        value = self.recipe.get("distributed", DEFAULT_SCHEME)
        return {
            "count": ranks.size,
            "communicator": type(communicator).__name__,
            "scheme": value if isinstance(value, str) else value.__name__,
            **{name: [of_rank[name] for of_rank in found] for name in own},
            "losses": self.setup.losses.found,
        }


def set_up_ranks(
    recipe: Recipe,
    options: RankOptions | None = None,
    communicator: Communicator | None = None,
    *,
    resumes: bool = False,
) -> RankSetup | None:
    """Return the ranks of a run, once they are known to have the same recipe; ``None`` for one without any.

    A process that was started alone is a rank where the recipe says ``distributed``.

    Args:
        recipe: What is run.
        options: Settings of the machine.
        communicator: What carries the messages; by default what fits how the process was started.
        resumes: Whether it is to go on from a checkpoint, perhaps of ranks of which some were lost, which do not have
            to share the minibatch evenly; :meth:`RankSetup.check_minibatch` is left to the caller then.

    Raises:
        CommunicationError: The communicator does not fit how the process was started, or cannot go on without a rank.
        RecipeError: Ranks differ, or the minibatch cannot be dealt out.
    """
    options = options or RankOptions()
    if communicator is None:
        if detect().size == 1 and "distributed" not in recipe and options.communicator is None:
            return None
        communicator = create_communicator(
            options.communicator, timeout_s=options.timeout_s, on_failure=options.on_failure
        )
    setup = RankSetup(communicator, CommunicatorRanks(communicator), options)
    if options.on_failure == "shrink" and setup.size > 1 and not setup.survives:
        raise CommunicationError(
            f"The ranks were to go on when one of them fails ('shrink') over {type(communicator).__name__}, which "
            f"cannot. Accepted is the communicator 'ulfm', which needs Open MPI 5 and mpi4py from 4.1 (pip install "
            f"'deep500[ulfm]'); or on_failure='abort'."
        )
    if not resumes:
        setup.check_minibatch(recipe)
    setup.check_recipe(recipe)
    setup.losses.begin_without(communicator, recipe["batch_size"])
    return setup


def find_scheme(value: Any) -> type[Scheme] | type[DistributedOptimizer]:
    """Return a scheme's class, or that of a distributed optimizer with a step of its own.

    Raises:
        RecipeError: It is neither.
        UnknownNameError: There is no scheme of this name.
    """
    found = SCHEMES.get(value) if isinstance(value, str) else value
    is_one = isinstance(found, type) and issubclass(found, (Scheme, DistributedOptimizer))
    if is_one and not inspect.isabstract(found):
        kind: type[Scheme] | type[DistributedOptimizer] = found
        return kind
    raise RecipeError(
        f"'distributed' is {shown(value)}, which is no scheme. Accepted are {', '.join(SCHEMES.names())}, a Scheme's "
        f"class, and that of a DistributedOptimizer."
    )


def _bytes_of(volume: LedgerSnapshot) -> dict[str, int]:
    return {
        "sent_bytes": volume.sent_bytes,
        "received_bytes": volume.received_bytes,
        "payload_bytes": volume.payload_bytes,
    }


def _flat(description: Mapping[str, Any]) -> dict[str, Any]:
    return {**description["fixed"], **description["mutable"]}
