"""The reporter of ``deep500 run``, which tells the launcher of several ranks when they have begun."""

from __future__ import annotations

from deep500.distributed.rank_process import tell_begin
from deep500.recipe.reporter import ConsoleReporter
from deep500.recipe.result import RecipeResult

__all__ = ["RankReporter"]


class RankReporter(ConsoleReporter):
    """Writes for people, on rank 0; from the begin of the training on, a signal leaves a result, which takes time."""

    def started(self, result: RecipeResult) -> None:
        """Tell the launcher, where there is one, and write what is run."""
        tell_begin()
        super().started(result)
