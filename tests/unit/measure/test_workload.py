from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import Deep500Error, MeasurementError, PluginError, UnknownNameError
from deep500.measure import workload as module
from deep500.measure.metric import Direction
from deep500.measure.workload import (
    WORKLOADS,
    Score,
    Work,
    Workload,
    WorkloadSpec,
    open_workload,
    parse_workload,
)


class Nothing(Workload):
    def run(self) -> None:
        return None


# --- the parts of a text ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model:lenet", WorkloadSpec("model:lenet", "model", "lenet")),
        ("  model:lenet\n", WorkloadSpec("model:lenet", "model", "lenet")),
        ("model:lenet@pytorch", WorkloadSpec("model:lenet@pytorch", "model", "lenet", {}, "pytorch")),
        ("model:a@pytorch:gpu:1", WorkloadSpec("model:a@pytorch:gpu:1", "model", "a", {}, "pytorch", "gpu:1")),
        ("model: lenet , a = 1 @ pytorch : cpu",
         WorkloadSpec("model: lenet , a = 1 @ pytorch : cpu", "model", "lenet", {"a": 1}, "pytorch", "cpu")),
        ("my.module:fn", WorkloadSpec("my.module:fn", "callable", "my.module:fn")),
        ("callable:my.module:fn", WorkloadSpec("callable:my.module:fn", "callable", "my.module:fn")),
        ("müller:größe,ñ=1", WorkloadSpec("müller:größe,ñ=1", "callable", "müller:größe", {"ñ": 1})),
        ("model:a/b c/it's (1).onnx", WorkloadSpec("model:a/b c/it's (1).onnx", "model", "a/b c/it's (1).onnx")),
        ("model:'a@b,c.onnx'@reference",
         WorkloadSpec("model:'a@b,c.onnx'@reference", "model", "a@b,c.onnx", {}, "reference")),
        ("recipe:r,optimizer_args.0=0.1",
         WorkloadSpec("recipe:r,optimizer_args.0=0.1", "recipe", "r", {"optimizer_args.0": 0.1})),
    ],
)  # fmt: skip
def test_parts_of_a_text(text: str, expected: WorkloadSpec) -> None:
    assert parse_workload(text) == expected


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("3", 3), ("-3", -3), ("1e-3", 1e-3), ("True", True), ("None", None), ("[1,2]", [1, 2]), ("(1,)", (1,)),
        ("{'a': 1}", {"a": 1}), ("'x,y@z'", "x,y@z"), ('"it\'s"', "it's"), (r"'\'@'", "'@"), ("momentum", "momentum"),
        ("1x3x32", "1x3x32"), ("0x10", "0x10"), ("0X3", "0X3"), ("4:int64", "4:int64"), ("[2x3,2x3]", "[2x3,2x3]"),
        ("", ""), ("007", "007"), ("a=b", "a=b"), ("3if", "3if"), ("f(1)", "f(1)"),
        ("__import__('os')", "__import__('os')"),
        ("9" * 5000, "9" * 5000), ("-" * 5000 + "1", "-" * 5000 + "1"),
    ],
)  # fmt: skip
def test_value_of_an_option(written: str, value: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parsed = parse_workload(f"op:Conv,x={written}").options["x"]

    assert parsed == value
    assert type(parsed) is type(value)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda children: (
        st.lists(children, max_size=3)
        | st.tuples(children, children)
        | st.dictionaries(st.text(max_size=4), children, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


@given(
    kind=st.sampled_from(WORKLOADS.names()),
    name=st.text(min_size=1),
    options=st.dictionaries(NAMES, VALUES, max_size=4),
    place=st.none() | st.tuples(NAMES, st.none() | st.from_regex(r"[a-z]{1,4}(:[0-9])?", fullmatch=True)),
)
def test_what_is_written_as_python_does_is_read_as_it_was(
    kind: str, name: str, options: dict[str, Any], place: tuple[str, str | None] | None
) -> None:
    framework, device = place or (None, None)
    text = f"{kind}:{name!r}" + "".join(f",{key}={value!r}" for key, value in options.items())
    text += "" if framework is None else f"@{framework}" + (f":{device}" if device else "")

    spec = parse_workload(text)

    assert spec == WorkloadSpec(text, kind, name, options, framework, device)
    assert [type(value) for value in spec.options.values()] == [type(value) for value in options.values()]
    assert parse_workload(spec.text) == spec


@given(st.text() | st.text(alphabet="model:op,=@()[]{}'\"\\ x1.-"))
def test_any_text_is_parsed_or_refused_in_words(text: str) -> None:
    for candidate in (text, f"model:{text}"):
        with contextlib.suppress(MeasurementError):
            spec = parse_workload(candidate)
            assert spec.name
            assert spec.kind in WORKLOADS.names()
            assert spec.text == candidate.strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "None is not a workload"),
        (3, "3 is not a workload"),
        ("", "'' is not a workload. Accepted are KIND:NAME"),
        ("lenet", "'lenet' is not a workload"),
        ("x" * 10_000, "a text of 10000 characters is not a workload"),
        ("modle-x:lenet", "there is no kind 'modle-x'. Did you mean 'model'?"),
        (":lenet", "there is no kind ''"),
        ("a..b:c", "there is no kind 'a..b'"),
        ("1a:c", "there is no kind '1a'"),
        ("model:", "names nothing after its kind; accepted is model:NAME"),
        ("model:@pytorch", "names nothing after its kind"),
        ("model:'',a=1", "names nothing after its kind"),
        ("model:lenet,", "'' in 'model:lenet,' is no option; accepted is key=value"),
        ("model:lenet,depth", "'depth' in 'model:lenet,depth' is no option"),
        ("model:lenet,=3", "'=3' in 'model:lenet,=3' is no option"),
        ("model:lenet,1a=3", "is no option"),
        ("model:lenet,a.=3", "is no option"),
        ("model:lenet,a=1,a=2", "gives a twice"),
        ("model:lenet@", "names no framework after its @"),
        ("model:lenet@:gpu", "names no framework after its @"),
        ("model:lenet@pytorch:", "names no device after its framework and colon"),
        ("model:lenet@pytorch,batch_size=3", "options stand before it"),
        ("model:lenet,shape=(1,8,8", "lacks a closing '\\)'"),
        ("model:lenet,shape=[(1,8", r"lacks a closing '\)\]'"),
        ("model:lenet,shape=1)", "closes a '\\)' that was not opened"),
        ("model:lenet,shape=(1]", r"closes a '\]' that was not opened"),
        ("model:lenet,x='abc", 'lacks a closing "\'"'),
    ],
)
def test_bad_text_is_refused(text: Any, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        parse_workload(text)


# --- opening ----------------------------------------------------------------------------------------------------------


def test_opened_workload_knows_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKLOADS, "get", lambda kind: lambda spec: Nothing())

    assert open_workload(" model:lenet ").spec == "model:lenet"
    assert open_workload(parse_workload("model:mlp")).spec == "model:mlp"


def test_kind_that_makes_no_workload_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKLOADS, "get", lambda kind: lambda spec: 3)

    with pytest.raises(MeasurementError, match="The workload kind 'model' made a int, not a Workload"):
        open_workload("model:lenet")


def test_kind_without_a_file_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"no workload kind named 'modle'\. Did you mean 'model'"):
        open_workload(WorkloadSpec("modle:x", "modle", "x"))


def test_each_kind_is_one_function() -> None:
    for kind in WORKLOADS.names():
        assert WORKLOADS.get(kind).__name__ == kind
        assert WORKLOADS.get(kind).__doc__
    assert issubclass(PluginError, Deep500Error)


# --- the contract -----------------------------------------------------------------------------------------------------


def test_workload_that_only_runs_has_defaults_for_all_else() -> None:
    workload = Nothing()

    assert workload.identity == {"problem": f"{__name__}:Nothing"}
    workload.spec = "my:text"
    assert workload.identity == {"problem": "my:text"}
    assert (dict(workload.factors), workload.data_hash, workload.initialisation_hash) == ({}, None, None)
    assert (workload.work, workload.runs_per_launch, workload.scores()) == (Work(), None, [])
    workload.synchronize()
    workload.close()


def test_workload_has_to_run() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Workload()  # type: ignore[abstract]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, True, "3", 10**400])
def test_score_is_a_finite_number(value: Any) -> None:
    with pytest.raises(MeasurementError, match="The score accuracy has the value"):
        Score("accuracy", value)
    if value is not None:
        with pytest.raises(MeasurementError, match="The score accuracy has the acceptable value"):
            Score("accuracy", 1.0, acceptable=value)


def test_score_may_have_no_acceptable_value() -> None:
    assert Score("accuracy", 1).acceptable is None
    assert Score("accuracy", 1, acceptable=-3.5).acceptable == -3.5


@pytest.mark.parametrize("name", ["items", "flops", "bytes"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "3", True])
def test_work_is_counted(name: str, value: Any) -> None:
    with pytest.raises(MeasurementError, match=f"Work: {name} was given as"):
        Work(**{name: value})
    assert getattr(Work(**{name: 0}), name) == 0


def test_public_names_are_all_there() -> None:
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": 5}, "they are 5 and"),
        ({"name": ""}, "they are '' and ''"),
        ({"unit": None}, "they are 'a' and None"),
        ({"direction": "up"}, "direction of the score a is 'up'; accepted: higher, lower"),
        ({"kind": "speed"}, "kind of the score a is 'speed'"),
    ],
)
def test_score_is_checked(values: dict[str, Any], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        Score(**{"name": "a", "value": 1.0, **values})


def test_words_of_a_score_become_its_direction_and_kind() -> None:
    assert Score("a", 1.0, direction="lower").direction is Direction.LOWER
