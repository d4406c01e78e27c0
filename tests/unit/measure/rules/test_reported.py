from __future__ import annotations

from deep500.measure.rules._reported import reported_means, reported_quantiles, reported_ratios, reported_verdicts
from tests.unit.measure.rules.support import changed, comparison, measurement, view


def keys(found):
    return [entry.where for entry in found]


def test_a_measurement_of_deep500_reports_nothing_beside_its_samples():
    document = view(measurement())

    assert (reported_means(document), reported_ratios(document), reported_quantiles(document)) == ([], [], [])
    assert reported_verdicts(document) == []


def test_a_comparison_of_deep500_reports_its_ratios_only():
    document = view(comparison(2.0, 1.5))

    assert keys(reported_ratios(document)) == ["rows[0].ratio", "rows[1].ratio"]
    assert (reported_means(document), reported_quantiles(document)) == ([], [])
    assert [verdict for _, verdict in reported_verdicts(document)] == ["slower", "slower"]


def test_numbers_are_found_by_words_and_know_their_metric():
    document = changed(
        measurement(),
        lambda d: d["systems"][0]["metrics"][0].update(
            summary={"geometricMean": 1, "meaning": 2, "P95": {"value": 3}, "speedUpMean": [4]}
        ),
    )
    means = reported_means(view(document))

    assert keys(means) == [f"systems[0].metrics[0].summary.{key}" for key in ("geometricMean", "speedUpMean")]
    assert [mean.is_of_ratios for mean in means] == [False, True]
    assert means[0].mean == "geometric"
    assert means[0].metric.metric == "WallclockTime"
    ((percentile, quantile),) = reported_quantiles(view(document))
    assert (percentile.value, quantile) == (3.0, 0.95)
