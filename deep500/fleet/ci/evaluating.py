"""What a choice of jobs would have found of later commits, beside jobs chosen at random for the same cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from deep500.fleet.ci.newly_failing import FOREVER

__all__ = [
    "BETTER",
    "NOTHING_TO_CHOOSE",
    "NOT_BETTER",
    "UNDECIDED",
    "WORSE",
    "Delay",
    "Evaluation",
    "delay_of",
    "evaluate",
    "found_by",
]

BETTER, NOT_BETTER, WORSE, UNDECIDED = "better than random", "not better than random", "worse than random", "undecided"

#: The verdict where every random choice is the choice itself, which therefore cannot be better or worse.
NOTHING_TO_CHOOSE = "undecided: nothing was left to choose"

#: With fewer newly failing commits, an interval over them says nothing; a verdict needs as many.
FEWEST_COMMITS = 6

#: Confidence of all intervals.
CONFIDENCE = 0.95

#: So many numbers of a bootstrap are held at once.
_AT_ONCE = 4_000_000

Ends = tuple[float, float] | None


@dataclass(frozen=True)
class Evaluation:
    """How a choice does on commits that it was not made from.

    Attributes:
        commits: How many of them newly fail.
        found: How many of these the chosen jobs find.
        recall: The share; ``None`` without any.
        recall_interval: Its 95 % interval: bootstrap over commits, or Clopper-Pearson's where all or none are found.
        random_recall: The mean of the random choices.
        random_interval: Between which values 95 % of the random choices lie.
        random_cost: What the random choices cost on average.
        random_as_good: The share of random choices that find as many or more.
        difference: Recall - mean recall of the random choices.
        difference_interval: Its 95 % interval: bootstrap over commits, both taken from the same ones.
        verdict: Better than random or worse when the interval of the difference excludes 0; undecided where commits
            are few, or where nothing was left to choose.
    """

    commits: int
    found: int
    recall: float | None
    recall_interval: Ends
    random_recall: float | None
    random_interval: Ends
    random_cost: float
    random_as_good: float | None
    difference: float | None
    difference_interval: Ends
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class Delay:
    """When failures are found if the jobs that are not chosen still run at every K-th commit.

    All figures are means over where the count to K begins.

    Attributes:
        every: K.
        found: The share of newly failing commits that are found at last.
        passed_by: The share whose failures pass again before any job saw them.
        mean_commits: The mean delay in commits of those that are found; 0 for those that the chosen jobs find.
        mean_missed_commits: The same of those only that the chosen jobs do not find; ``None`` without such.
        saved_share: What is still saved of all costs.
    """

    every: int
    found: float
    passed_by: float
    mean_commits: float | None
    mean_missed_commits: float | None
    saved_share: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return asdict(self)


def found_by(broken: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which newly failing commits sets of jobs find.

    Args:
        broken: Which jobs newly fail at each commit, [n, J].
        chosen: The sets, [m, J].

    Returns:
        Whether at least one job of each set newly fails at each commit, [m, n].
    """
    return np.asarray(chosen.astype(np.float32) @ broken.astype(np.float32).T > 0.5)


def evaluate(
    broken: NDArray[np.bool_],
    chosen: NDArray[np.bool_],
    random: NDArray[np.bool_],
    random_cost: float,
    generator: np.random.Generator,
    resamples: int = 9999,
) -> Evaluation:
    """Compare a choice with random ones on the same newly failing commits.

    Args:
        broken: Which jobs newly fail at each of the commits, [n, J].
        chosen: The choice, [J].
        random: Random choices, [m, J].
        random_cost: What these cost on average.
        generator: Where the resamples of commits come from.
        resamples: How many there are.
    """
    count = len(broken)
    if count == 0:
        return Evaluation(0, 0, None, None, None, None, random_cost, None, None, None, UNDECIDED)
    found = found_by(broken, chosen[None, :])[0]
    drawn = found_by(broken, random)
    per_draw, per_commit = drawn.mean(1), drawn.mean(0)
    low, high = np.quantile(per_draw, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    gaps = found - per_commit
    interval = _mean_interval(gaps, generator, resamples)
    return Evaluation(
        commits=count,
        found=int(found.sum()),
        recall=float(found.mean()),
        recall_interval=_share_interval(found, generator, resamples),
        random_recall=float(per_draw.mean()),
        random_interval=(float(low), float(high)),
        random_cost=random_cost,
        random_as_good=float((drawn.sum(1) >= found.sum()).mean()),
        difference=float(gaps.mean()),
        difference_interval=interval,
        verdict=_verdict(interval),
    )


def delay_of(found: NDArray[np.bool_], lives: NDArray[np.int64], every: int, saved_share: float) -> Delay:
    """Return when newly failing commits are found if what is not chosen runs at every ``every``-th commit.

    A commit that the chosen jobs do not find is seen at the next such run, which is 0 to ``every - 1`` commits away,
    each as likely, if what it broke is still broken then: with probability min(every, life)/every, after
    (min(every, life) - 1)/2 commits on average.

    Args:
        found: Which commits the chosen jobs find, [n].
        lives: For how many commits each stays broken, [n].
        every: How many commits lie between two runs.
        saved_share: What is saved of all costs without these runs.
    """
    seen = np.minimum(np.where(lives == FOREVER, every, lives), every)
    chance = np.where(found, 1.0, seen / every)
    delays = np.where(found, 0.0, (seen - 1) / 2)
    missed = chance[~found]
    total = float(chance.sum())
    return Delay(
        every=every,
        found=float(chance.mean()) if len(found) else 0.0,
        passed_by=float(1 - chance.mean()) if len(found) else 0.0,
        mean_commits=float((chance * delays).sum()) / total if total else None,
        mean_missed_commits=float((missed * delays[~found]).sum() / missed.sum()) if missed.sum() else None,
        saved_share=saved_share * (1 - 1 / every),
    )


def _verdict(interval: Ends) -> str:
    if interval is None:
        return UNDECIDED
    low, high = interval
    return BETTER if low > 0 else WORSE if high < 0 else NOT_BETTER


def _share_interval(found: NDArray[np.bool_], generator: np.random.Generator, resamples: int) -> Ends:
    if len(found) < FEWEST_COMMITS:
        return None
    if found.all() or not found.any():  # resamples of equal values are all the same, but the share is not certain
        exact = stats.binomtest(int(found.sum()), len(found)).proportion_ci(CONFIDENCE, method="exact")
        return float(exact.low), float(exact.high)
    return _mean_interval(found.astype(np.float64), generator, resamples)


def _mean_interval(values: NDArray[np.float64], generator: np.random.Generator, resamples: int) -> Ends:
    """Return the 95 % percentile interval of a mean over resamples; ``None`` where values are few."""
    if len(values) < FEWEST_COMMITS:
        return None
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    result = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=resamples,
        batch=max(1, _AT_ONCE // len(values)),
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=generator,
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)
