from __future__ import annotations

import json

from deep500.training.statistics import EpochRecord, Outcome, PassRecord, TrainingStatistics


def make_statistics() -> TrainingStatistics:
    stats = TrainingStatistics(3, 7, 5)
    stats.initial_test = PassRecord(3, 11, 0.5, 2.0, 10.0)
    stats.epochs = [
        EpochRecord(0, PassRecord(4, 28, 1.5, 1.0, 50.0, [2.0, 1.0]), PassRecord(3, 11, 0.25, 0.9, 60.0)),
        EpochRecord(1, PassRecord(2, 14, 1.0, float("nan"), 70.0, [float("inf")], complete=False)),
    ]
    return stats


def test_incomplete_passes_have_no_accuracy_to_speak_of() -> None:
    stats = make_statistics()

    assert (stats.train_accuracy, stats.test_accuracy) == (50.0, 60.0)
    stats.epochs[1].test = PassRecord(1, 5, 0.1, 0.1, 100.0, complete=False)
    assert stats.test_accuracy == 60.0
    stats.epochs[0].test = None
    assert stats.test_accuracy == 10.0
    assert TrainingStatistics(1, 2).test_accuracy is None


def test_seconds_are_summed() -> None:
    assert (make_statistics().training_s, make_statistics().testing_s) == (2.5, 0.75)


def test_dictionary_is_strict_json() -> None:
    stats = make_statistics()

    read = json.loads(json.dumps(stats.to_dict(step_losses=True), allow_nan=False))

    assert read["epochs"][1]["training"]["loss"] == "nan"
    assert read["epochs"][1]["training"]["step_losses"] == ["inf"]
    assert read["epochs"][0]["test"]["accuracy_percent"] == 60.0
    assert read["epochs"][1]["test"] is None
    assert (read["outcome"], read["complete"], read["epochs_planned"]) == ("running", False, 3)
    assert (read["train_batch_size"], read["test_batch_size"]) == (7, 5)
    assert "step_losses" not in stats.to_dict()["epochs"][0]["training"]


def test_complete_means_that_it_ended_as_planned() -> None:
    stats = TrainingStatistics(1, 2)
    for outcome in Outcome:
        stats.outcome = outcome
        assert stats.complete is (outcome in (Outcome.COMPLETED, Outcome.STOPPED))
