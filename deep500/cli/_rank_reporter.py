"""The reporter of ``deep500 run``, which tells the launcher of several ranks when they have begun."""

from __future__ import annotations

from deep500.distributed.rank_process import tell_begin
from deep500.recipe.reporter import ConsoleReporter
from deep500.recipe.result import RecipeResult

__all__ = ["RankReporter"]


class RankReporter(ConsoleReporter):
    """Writes for people, on rank 0; from the begin of the training on, a signal leaves a result, which takes time.

    Attributes:
        told_end: Whether this rank wrote the end of a run: as rank 0, or in the place of one that was lost.
    """

    told_end = False

    def started(self, result: RecipeResult) -> None:
        """Tell the launcher, where there is one, and write what is run."""
        tell_begin()
        super().started(result)

    def finished(self, result: RecipeResult) -> None:
        """Write the end of a run."""
        self.told_end = True
        super().finished(result)
