from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist

from deep500.core.errors import FleetError
from deep500.fleet.ci.correlating import correlate, phi_interval, phi_matrix
from deep500.fleet.ci.generating import generate_history
from deep500.fleet.ci.history import history_of
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from tests.unit.fleet.ci.support import history_from

MATRICES = arrays(
    np.float32, st.tuples(st.integers(2, 30), st.integers(2, 7)), elements=st.sampled_from([0, 1, np.nan])
)

#: Names of jobs with the ends that the study strips.
STUDY_JOBS = [
    *(f"pytorch_py{n}_{kind}" for n in range(6) for kind in ("build", "test")),
    *(f"caffe2-cuda{n}-{kind}" for n in range(4) for kind in ("build", "test")),
    "pytorch_py0_multigpu_test", "pytorch_py1_NO_AVX2_test", "pytorch_py1_NO_AVX_NO_AVX2_test", "docs", "old_test",
]  # fmt: skip


def _study(files: list[dict[str, dict[str, str]]]) -> tuple[list[str], np.ndarray, np.ndarray, Any]:
    """The study's code, file by file, with its reading of folders and its calls that pandas no longer has replaced."""
    pandas = pytest.importorskip("pandas")

    def strip_end(text: str, suffix: str) -> str:
        if not text.endswith(suffix):
            return text
        return text[: len(text) - len(suffix)]

    table, keys = [], set()
    for j in files:  # the last is the latest
        entry: dict[str, int] = {}
        new_keys = set()
        for k, v in j.items():
            for suffix in ("_build", "_test", "-build", "-test", "_multigpu", "_NO_AVX_NO_AVX2", "_NO_AVX2"):
                k = strip_end(k, suffix)
            new_keys.add(k)
            if k not in entry:
                entry[k] = 1
            entry[k] *= 1 if v["status"] == "success" else 0
        keys = new_keys
        table.append(entry)
    df = pandas.DataFrame([{k: v[k] for k in sorted(set(v) & keys)} for v in table], columns=sorted(keys))
    corr = df.corr().values
    distances = pdist(corr)
    linkage = hierarchy.linkage(distances, method="complete")
    idx = hierarchy.fcluster(linkage, 0.1 * distances.max(), "distance")
    columns = [df.columns.tolist()[i] for i in list(np.argsort(idx, kind="stable"))]
    return columns, idx, corr, df[columns].corr().values


def _study_files() -> list[dict[str, dict[str, str]]]:
    generator = np.random.default_rng(8)
    families = {job: job.split("_")[0].split("-")[0] + str(hash_of(job) % 2) for job in STUDY_JOBS}
    files = []
    for number in range(160):
        broken = {family for family in sorted(set(families.values())) if generator.random() < 0.15}
        jobs = [job for job in STUDY_JOBS if generator.random() < 0.95 or number == 159]
        jobs = [job for job in jobs if job != "old_test" or number < 100]
        failed = {job: families[job] in broken or generator.random() < 0.002 for job in jobs}
        files.append({job: {"status": "failure" if failed[job] else "success"} for job in jobs})
    return files


def hash_of(text: str) -> int:
    return sum(map(ord, text))


def test_the_study_is_reproduced() -> None:
    files = _study_files()
    columns, idx, corr, ordered = _study(files)
    table = OutcomeTable.from_outcomes(
        Outcome(job, f"c{number}", "passed" if said["status"] == "success" else "failed", submitted=float(number))
        for number, file in enumerate(files)
        for job, said in file.items()
    )
    made = correlate(history_of(table, merge="seed", latest=True), least_support=2)

    assert len(columns) == 11
    assert 1 < len(set(idx.tolist())) < 11
    assert "old" not in columns
    np.testing.assert_array_equal(made.clustering.labels, idx)
    assert list(made.history.jobs) == columns
    np.testing.assert_allclose(made.matrix, ordered, rtol=0, atol=1e-12)
    assert made.clustering.largest == pytest.approx(pdist(corr).max(), rel=1e-12)
    assert [row["number"] for row in made.rows()] == list(range(11))
    assert [row["job"] for row in made.rows()] == columns


@settings(max_examples=60, deadline=None)
@given(MATRICES)
def test_correlations_are_pearsons_over_what_both_have(results: np.ndarray) -> None:
    made, support = phi_matrix(results)
    for i in range(results.shape[1]):
        for j in range(results.shape[1]):
            both = ~np.isnan(results[:, i]) & ~np.isnan(results[:, j])
            a, b = results[both, i].astype(float), results[both, j].astype(float)
            assert support[i, j] == both.sum()
            if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
                assert np.isnan(made[i, j])
            else:
                assert made[i, j] == pytest.approx(stats.pearsonr(a, b).statistic, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(MATRICES, st.randoms(use_true_random=False))
def test_the_order_of_jobs_and_commits_says_nothing(results: np.ndarray, random: Any) -> None:
    columns, rows = list(range(results.shape[1])), list(range(results.shape[0]))
    random.shuffle(columns)
    random.shuffle(rows)
    made, support = phi_matrix(results)
    again, support_again = phi_matrix(results[rows][:, columns])

    np.testing.assert_array_equal(again, made[np.ix_(columns, columns)])
    np.testing.assert_array_equal(support_again, support[np.ix_(columns, columns)])


def test_planted_groups_are_the_clusters() -> None:
    table, truth = generate_history(commits=300, seed=1)
    made = correlate(history_of(table))

    assert {frozenset(group) for group in made.groups()} == {frozenset(group) for group in truth.groups}
    assert made.left_out == dict.fromkeys(truth.idle, "never failed")
    assert made.undefined == 0
    assert made.pairs[0].phi == 1.0
    assert made.pairs[0].low > 0.8
    assert [pair.both_failed for pair in made.pairs] == sorted((p.both_failed for p in made.pairs), reverse=True)
    inner = [pair for pair in made.pairs if pair.phi == 1.0]
    assert all(pair.one_failed == 0 < pair.both_failed for pair in inner)


def test_jobs_without_a_correlation_are_named() -> None:
    n = np.nan
    history = history_from(
        [[0, 1, 1, 0, n, n], [1, 0, 1, 0, n, 1], [0, 0, 1, 0, n, n], [1, 1, 1, 0, n, 0]],
        ["a", "b", "always", "never", "nothing", "seldom"],
    )
    made = correlate(history, least_support=3)

    assert made.left_out == {
        "always": "never failed", "never": "never passed", "nothing": "no result", "seldom": "fewer than 3 results",
    }  # fmt: skip
    assert set(made.history.jobs) == {"a", "b"}
    assert correlate(history, least_support=2).left_out.keys() == {"always", "never", "nothing"}


def test_undefined_pairs_count_as_0_where_rows_are_compared() -> None:
    n = np.nan
    a = np.array([0, 1, 0, 1, n, n, n, n])
    b = np.array([n, n, n, n, 1, 0, 1, 0])
    made = correlate(history_from(np.stack([a, b, a], axis=1)), least_support=2)

    assert made.undefined == 2
    assert made.groups() == [["job0000", "job0002"], ["job0001"]] or made.groups() == [
        ["job0001"],
        ["job0000", "job0002"],
    ]
    assert made.clustering.largest == pytest.approx(np.sqrt(3))  # rows (1, 0, 1) and (0, 1, 0)
    assert [pair.first for pair in made.pairs] == ["job0000"]


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(5)
    probabilities = np.array([0.06, 0.03, 0.04, 0.87])
    p11, a, b = probabilities[3], probabilities[2] + probabilities[3], probabilities[1] + probabilities[3]
    truth = (p11 - a * b) / np.sqrt(a * (1 - a) * b * (1 - b))
    held = 0
    for _ in range(300):
        low, high = phi_interval(generator.multinomial(150, probabilities), generator)
        held += low <= truth <= high
    assert 0.91 < held / 300 < 0.985


def test_a_seed_gives_the_same_intervals() -> None:
    history = history_of(generate_history(commits=100, seed=2)[0])
    first, second, third = (correlate(history, seed=seed).pairs for seed in (0, 0, 1))
    assert first == second != third
    assert [replace(pair, low=0, high=0) for pair in first] == [replace(pair, low=0, high=0) for pair in third]


def test_mistakes() -> None:
    history = history_from([[0, 1], [1, 1]])
    with pytest.raises(FleetError, match="1 of 2 jobs both passed and failed"):
        correlate(history, least_support=2)
    with pytest.raises(FleetError, match="least_support was given as 1"):
        correlate(history, least_support=1)
    with pytest.raises(FleetError, match="Accepted: complete"):
        correlate(history, linkage="medoid")
