from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deep500.core.errors import MeasurementError, PluginError
from deep500.core.registry import Registry
from deep500.measure import rule
from deep500.measure.document_view import number_of
from deep500.measure.metric import MetricKind
from deep500.measure.results.comparing import compare
from deep500.measure.results.document import Measurement
from deep500.measure.results.report import Source
from deep500.measure.rule import RULES, Rule, RuleVerdict, check_rules, read_document
from deep500.measure.workload import Score, Work
from tests.unit.measure.rules.support import (
    changed,
    comparison,
    finding_of,
    measurement,
    metric,
    quantile_design,
    recipe,
    system,
    trained,
    verdict_of,
    view,
)

Document = dict[str, Any]

RANKS = {"framework": "pytorch", "device": "cpu", "ranks": 4, "synchronisation": "barrier", "rank_summary": "max"}
SCALED = {**RANKS, "local_batch_size": 8, "global_batch_size": 32, "scaling": "strong"}
COUNTED = Work(flops=1e6, dtype="float32")
PEAK = {"flops_per_s": 1e11, "bytes_per_s": 1e10, "dtype": "float32", "threads": 2, "how": "measured"}


def with_peak(**changes: Any) -> Document:
    document = measurement(system("model:lenet@pytorch", work=COUNTED))
    document["environment"]["peaks"] = [{**PEAK, **changes}]
    return document


def seen(**changes: Any) -> Score:
    return Score(**{"name": "Accuracy", "value": 99.0, "unit": "%", "acceptable": 90.0, "held_out": False, **changes})


#: For each rule a document that obeys it, one that breaks it, and what the reason must say.
PLANTED: dict[str, tuple[Document, Document, str]] = {
    "base_case": (comparison(2.0), changed(comparison(2.0), lambda d: d.pop("base")), "no base"),
    "justified_subset": (
        measurement(system(), system("op:Relu")),
        measurement(system(), workloads=("op:Conv@pytorch", "op:Relu")),
        "op:Relu was planned and not run",
    ),
    "means": (
        measurement(system(metrics=(metric(calls_per_sample=8),))),
        changed(measurement(), lambda d: d["systems"][0]["metrics"][0].update(harmonic_mean=1e-3)),
        "harmonic mean of a cost",
    ),
    "no_mean_of_ratios": (
        comparison(2.0, 1.5),
        changed(comparison(2.0, 1.5), lambda d: d.update(mean_speedup=1.7)),
        "mean of ratios",
    ),
    "intervals": (measurement(), measurement(system(metrics=(metric(5),))), "--launches 6"),
    "normality": (
        measurement(),
        changed(
            measurement(),
            lambda d: d["systems"][0]["metrics"][0].update(mean={"value": 1e-3, "low": 9e-4, "high": 2e-3}),
        ),
        "fewer than 20",
    ),
    "statistical_comparison": (
        comparison(2.0),
        changed(comparison(1.0), lambda d: d["rows"][0].update(verdict="slower")),
        "say undecided",
    ),
    "suited_statistic": (
        measurement(system(metrics=(metric(size=368),)), statistic=quantile_design(0.99)),
        measurement(system(metrics=(metric(size=50),)), statistic=quantile_design(0.99)),
        "needs 368 samples in each launch, and one has 50",
    ),
    "documented_setup": (measurement(), changed(measurement(), lambda d: d.update(environment={})), "not recorded"),
    "parallel_timing": (
        measurement(system(factors=RANKS)),
        measurement(system(factors={**RANKS, "rank_summary": None})),
        "rank_summary",
    ),
    "bounds": (with_peak(), measurement(system("model:lenet@pytorch", work=COUNTED)), "no measured peak of float32"),
    "raw_samples": (
        measurement(),
        changed(measurement(), lambda d: d["systems"][0]["metrics"][0]["launches"][2].pop("samples")),
        "launches[2].samples is missing",
    ),
    "accuracy_beside_throughput": (measurement(trained()), measurement(trained(scores=())), "without any score"),
    "held_out_accuracy": (measurement(trained()), measurement(trained(scores=(seen(),))), "the training saw"),
    "io_included": (
        measurement(system("model:lenet", factors={"io": "synthetic, in memory"})),
        measurement(system("model:lenet")),
        "does not tell whether reading",
    ),
    "precision_specific_peak": (with_peak(), with_peak(dtype="float16"), "the peak is of float16"),
    "one_configuration": (
        measurement(trained()),
        changed(measurement(trained()), lambda d: d["systems"][0]["factors"].update(framework="tensorflow")),
        "changed after the measurement",
    ),
    "target_declared_before": (
        measurement(trained()),
        measurement(trained(scores=(seen(acceptable=None),))),
        "has no target",
    ),
    "several_seeds": (measurement(*map(trained, range(3))), measurement(*map(trained, range(2))), "2 seed"),
    "batch_and_scaling": (measurement(system(factors=SCALED)), measurement(system(factors=RANKS)), "local_batch_size"),
    "time_and_accuracy": (
        measurement(trained()),
        measurement(trained(metrics=(metric(name="Throughput", unit="1/s", kind=MetricKind.RATE),))),
        "reports no time",
    ),
}


@pytest.mark.parametrize("name", RULES.names())
def test_a_rule_tells_a_document_that_obeys_it_from_one_that_breaks_it(name: str) -> None:
    obeying, breaking, words = PLANTED[name]

    assert verdict_of(name, obeying)[0] == "obeyed", verdict_of(name, obeying)[1]
    verdict, reason = verdict_of(name, breaking)
    assert verdict == "broken", reason
    assert words in reason


@pytest.mark.parametrize("name", RULES.names())
def test_a_rule_has_nothing_to_say_about_some_document(name: str) -> None:
    always = {"documented_setup", "raw_samples", "intervals", "suited_statistic", "normality", "justified_subset"}
    documents = [measurement(), comparison(2.0), recipe()]
    verdicts = [finding_of(name, document).verdict for document in documents]

    assert (RuleVerdict.NOT_APPLICABLE in verdicts) or name in always


def test_findings_come_in_the_order_of_their_numbers_and_carry_a_reason_each() -> None:
    findings = check_rules(measurement())

    assert [finding.number for finding in findings] == [*map(str, range(1, 13)), *(f"F{n}" for n in range(1, 10))]
    assert len({finding.title for finding in findings}) == len(findings) == len(PLANTED)
    assert all(finding.reason and finding.title for finding in findings)
    assert findings[0].to_dict() == {
        "rule": "base_case",
        "number": "1",
        "title": findings[0].title,
        "verdict": "not applicable",
        "reason": findings[0].reason,
    }


@pytest.mark.parametrize("document", [measurement(), comparison(2.0, 1.5), measurement(*map(trained, range(3)))])
def test_good_documents_break_no_rule(document: Document) -> None:
    broken = [finding for finding in check_rules(document) if finding.verdict is RuleVerdict.BROKEN]

    assert broken == []


@pytest.mark.parametrize("margin", [None, 0.05])
def test_what_deep500_compare_writes_breaks_no_rule(margin: float | None) -> None:
    systems = [
        system(
            "op:Conv",
            metrics=(metric(8, median_s=median_s, seed=seed),),
            label=label,
            factors={"framework": label, "device": "cpu"},
        )
        for seed, (label, median_s) in enumerate({"base": 1e-3, "slower": 2e-3, "same": 1e-3}.items())
    ]
    result = Measurement.from_dict(measurement(*systems, workloads=("op:Conv",) * 3, pairing="launches"))
    source = Source("result.json", "f" * 64)
    report = compare([(result, label) for label in ("base", "slower", "same")], margin=margin, sources=[source] * 3)
    document = json.loads(json.dumps(report.to_dict()))

    broken = [finding for finding in check_rules(document) if finding.verdict is RuleVerdict.BROKEN]
    assert broken == []
    assert "slower is slower: 2" in verdict_of("statistical_comparison", document)[1]


def test_a_rule_checks_a_document_as_well_as_its_view() -> None:
    rule = RULES.get("intervals")()

    assert rule.check(measurement()) == rule.check(view(measurement()))
    with pytest.raises(MeasurementError, match="has no kind"):
        rule.check({})


def test_the_result_of_one_run_lacks_an_interval_and_seeds_and_nothing_else() -> None:
    broken = {finding.rule for finding in check_rules(recipe()) if finding.verdict is RuleVerdict.BROKEN}

    assert broken == {"intervals", "several_seeds"}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "an object with a kind"),
        ("measurement", "an object with a kind"),
        ({}, "has no kind"),
        ({"kind": "picture"}, "'picture'"),
        ({"kind": ["measurement"]}, "['measurement']"),
        ({"kind": {"a": "b" * 10_000}}, "a dict"),
        ({"recipe": "digits"}, "has no kind"),
        ({**measurement(), "schema_version": 99}, "schema_version 99"),
        ({**comparison(2.0), "schema_version": 2}, "schema_version 2"),
    ],
)
def test_what_is_no_result_is_refused(document: Any, words: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        check_rules(document)

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_few_reasons_are_told_and_the_others_are_counted() -> None:
    documents = measurement(*(system(f"op:Op{number}", metrics=(metric(1),)) for number in range(7)))
    _, reason = verdict_of("intervals", documents)

    assert reason.count("of op:Op") == 3
    assert reason.endswith("and 4 more")


def test_a_plug_in_that_is_no_rule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "RULES", Registry("rule", "deep500.measure.metrics"))

    with pytest.raises(PluginError, match="not a subclass of Rule"):
        check_rules(measurement())


def test_a_rule_of_another_distribution_is_checked_after_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(Rule):
        number, title = "X1", "Nothing is good"

        def measurement(self, document: Any) -> Any:
            return self.broken("it is not")

    class Two:
        def __iter__(self) -> Any:
            return iter(["stubborn", "means"])

        def get(self, name: str) -> Any:
            return Stubborn if name == "stubborn" else RULES.get(name)

    monkeypatch.setattr(rule, "RULES", Two())

    assert [finding.number for finding in check_rules(measurement())] == ["3", "X1"]
    assert check_rules(comparison(2.0))[1].verdict is RuleVerdict.NOT_APPLICABLE
    assert check_rules(recipe())[1].verdict is RuleVerdict.NOT_APPLICABLE


# --- reading files -------------------------------------------------------------------------------------------------


def test_a_document_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"kind": "measurement", "systems": "none"}))

    assert read_document(path) == {"kind": "measurement", "systems": "none"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[1, 2]", "no JSON object"),
        (b'"text"', "no JSON object"),
        (b"\xff\xfe{}", "no text in UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"samples": [1], "samples": [2]}', "'samples' twice"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_document_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)

    with pytest.raises(MeasurementError) as caught:
        read_document(path)

    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing.json", ".", "a\0b"])
def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(MeasurementError, match="cannot be read"):
        read_document(f"{tmp_path}/{name}")


# --- whatever a document holds, there is a finding for each rule ---------------------------------------------------

SMALL: dict[str, Callable[[], Document]] = {
    "measurement": lambda: measurement(
        trained(work=COUNTED),
        system("model:x", metrics=(metric(2, 9),), factors=SCALED),
        statistic=quantile_design(0.9),
    ),
    "comparison": lambda: comparison(2.0, 1.0, margin=0.1),
    "recipe": recipe,
}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.integers(-2, 40),
    st.floats(),
    st.sampled_from(
        [0.5, 1.0, 1e308, 5e-324, 1 - 1e-16, -0.0, "median", "mean", "faster", "gpu:0", "recipe:x", "\ud800"]
    ),
    st.text(max_size=8),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.sampled_from(
        ["mean", "ratio", "speedup", "p99", "p100", "estimate", "low", "samples", "flops_per_s", "verdict"]
    ), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def draw_place(data: st.DataObject, document: Document) -> tuple[Any, Any]:
    """Draw a container and one of its keys, step by step, so that long lists of samples do not win."""
    container: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(container) if isinstance(container, dict) else range(len(container))))
        inner = container[key]
        if not isinstance(inner, (dict, list)) or not inner or not data.draw(st.booleans() | st.just(True)):
            return container, key
        container = inner


def is_known(kind: str, document: Document) -> bool:
    """Whether a document still is one of its kind, whatever the rest of it has become."""
    if kind == "recipe":
        return document.get("kind") is None and isinstance(document.get("recipe"), dict)
    version = number_of(document.get("schema_version"))
    return document.get("kind") == kind and (version is None or version <= 1)


@pytest.mark.parametrize("kind", SMALL)
@given(data=st.data())
@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_no_document_makes_a_rule_fail(kind: str, data: st.DataObject) -> None:
    document = SMALL[kind]()
    for _ in range(data.draw(st.integers(1, 4))):
        if not document:
            break
        container, key = draw_place(data, document)
        how = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if how == "remove" and isinstance(container, dict):
            container.pop(key, None)
        elif how == "add" and isinstance(container, dict):
            name = data.draw(st.sampled_from(["mean", "speedup", "p99", "p50", "verdict", "harmonic_mean"]) | st.text())
            container[name] = data.draw(values)
        else:
            container[key] = data.draw(values)

    if not is_known(kind, document):
        with pytest.raises(MeasurementError):
            check_rules(document)
        return
    findings = check_rules(document)

    assert len(findings) == len(RULES.names())
    for finding in findings:
        assert isinstance(finding.verdict, RuleVerdict)
        assert finding.reason.strip()
        json.dumps(finding.to_dict())


def test_a_document_that_is_all_wrong_breaks_the_rules_that_need_its_parts() -> None:
    names = ("design", "systems", "processes", "environment", "complete")
    broken = {
        f.rule for f in check_rules({"kind": "measurement", **dict.fromkeys(names, 7)}) if f.verdict.value == "broken"
    }

    assert broken == {"intervals", "suited_statistic", "documented_setup", "raw_samples"}
