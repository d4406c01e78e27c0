from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from deep500.core.errors import MeasurementError
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.statistics import EpochRecord, PassRecord, TrainingStatistics
from deep500.training.validation.convergence import ConvergenceVerdict, check_convergence, work_to_target
from deep500.training.validation.reference_runs import ReferenceRuns
from tests.unit.training.support import make_trainer


def reference(values: Sequence[float]) -> ReferenceRuns:
    return ReferenceRuns("r", "TestAccuracy", 97.0, "samples", tuple(values))


def test_p_value_is_that_of_the_exact_test() -> None:
    random = np.random.default_rng(1)
    for _ in range(20):
        runs, known = random.lognormal(size=5), random.lognormal(size=7)
        expected = mannwhitneyu(runs, known, alternative="greater", method="exact").pvalue

        assert check_convergence(list(runs), reference(known)).p_value == pytest.approx(expected, rel=1e-12)


def test_verdicts() -> None:
    known = reference([1000, 1010, 990, 1020, 980, 1005])

    assert check_convergence([2000, 1990, 2010], known).verdict is ConvergenceVerdict.SLOWER
    assert check_convergence([1000, 995, 1008, 1001, 1003], known).verdict is ConvergenceVerdict.NOT_SLOWER
    assert check_convergence([500, 490, 510], known).verdict is ConvergenceVerdict.NOT_SLOWER
    undecided = check_convergence([900, 1300, 1000], known)
    assert undecided.verdict is ConvergenceVerdict.UNDECIDED
    assert "more runs tell" in undecided.note
    assert not undecided.passed
    assert "one-sided Mann-Whitney p" in str(undecided)


def test_too_few_runs_decide_nothing() -> None:
    found = check_convergence([5000.0], reference([1000, 1010]))

    assert found.verdict is ConvergenceVerdict.UNDECIDED
    assert "of the 3 possible orders" in found.note
    # Of 10 runs against 2 one order in 66 is the most extreme one, of 5 one in 21.
    assert "5 runs could" in found.note
    assert check_convergence([5000.0] * 5, reference([1000, 1010])).verdict is ConvergenceVerdict.SLOWER


def test_run_that_never_met_the_target_is_the_slowest() -> None:
    known = reference([1000, 1010, 990, 1020])
    found = check_convergence([math.inf, math.inf, math.inf], known)

    assert found.verdict is ConvergenceVerdict.SLOWER
    assert check_convergence([1000, 1000, 1000, math.inf], reference([math.inf] * 4)).passed


def test_level_holds_where_there_is_no_difference() -> None:
    random = np.random.default_rng(0)
    verdicts = [
        check_convergence(list(random.lognormal(0, 0.2, 4)), reference(random.lognormal(0, 0.2, 5))).verdict
        for _ in range(600)
    ]

    assert verdicts.count(ConvergenceVerdict.SLOWER) <= 0.05 * 600 + 3 * math.sqrt(600 * 0.05 * 0.95)
    assert verdicts.count(ConvergenceVerdict.SLOWER) > 0


def test_arguments_are_checked() -> None:
    for runs, options in (([], {}), ([0.0], {}), ([1.0], {"level": 0.7}), ([1.0], {"margin": -1.0})):
        with pytest.raises(MeasurementError):
            check_convergence(runs, reference([1.0]), **options)


def statistics() -> TrainingStatistics:
    def record(epoch: int, accuracy: float, loss: float) -> EpochRecord:
        training = PassRecord(3, 25, 1.0, loss)
        return EpochRecord(epoch, training, PassRecord(1, 10, 0.1, loss, accuracy), steps=3 * (epoch + 1))

    return TrainingStatistics(3, 10, 10, epochs=[record(0, 50, 2.0), record(1, 80, 1.0), record(2, 90, 0.5)])


def test_work_until_a_test_met_the_target() -> None:
    found = statistics()

    assert [work_to_target(found, 80, unit=unit) for unit in ("samples", "steps", "epochs")] == [50.0, 6.0, 2.0]
    assert work_to_target(found, 0.6, of="loss") == 75.0
    assert work_to_target(found, 99) == math.inf
    assert work_to_target(found, 40, direction="lower") == math.inf
    with pytest.raises(MeasurementError, match="accepted are 'accuracy' and 'loss'"):
        work_to_target(found, 1, of="speed")
    with pytest.raises(MeasurementError, match="'samples', 'steps' and 'epochs'"):
        work_to_target(found, 1, unit="s")


def test_work_within_an_epoch() -> None:
    found = make_trainer(lambda e: GradientDescent(e, "loss", 0.5), batch_size=7).run_loop(
        2, [], evaluate_every_steps=2
    )
    first = next(e for e in found.all_evaluations if (e.result.accuracy_percent or 0) >= 90)

    assert work_to_target(found, 90, unit="steps") == first.step
    assert work_to_target(found, 90) == min(first.step * 7, first.step * 7 - 5 * (first.step // 5))
