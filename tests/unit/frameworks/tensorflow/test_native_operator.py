from __future__ import annotations

import locale
import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow import custom_op
from deep500.frameworks.tensorflow._native_adapter import load_adapter
from deep500.frameworks.tensorflow._native_operator import attribute_text
from tests.unit.frameworks.tensorflow.operators import blend, blend_inputs, echo, exponential, raw, traced

WHOLE = st.integers(-(2**63), 2**63 - 1)
NUMBER = st.floats(allow_nan=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(whole=WHOLE, number=NUMBER, text=TEXT, wholes=st.lists(WHOLE, max_size=4), numbers=st.lists(NUMBER, max_size=4))
@example(whole=-(2**63), number=-0.0, text="a b\n c\0d", wholes=[2**63 - 1], numbers=[math.inf, 5e-324])
@example(whole=0, number=0.1, text="", wholes=[], numbers=[])
def test_attributes_arrive(whole: int, number: float, text: str, wholes: list[int], numbers: list[float]) -> None:
    values = {"whole": whole, "number": number, "text": text, "wholes": tuple(wholes), "numbers": tuple(numbers)}
    outputs = [y.numpy() for y in custom_op(echo(**values))(tf.constant([1], tf.int64))]
    assert outputs[0].tolist() == [whole]
    assert outputs[1].tobytes() == np.float64([number]).tobytes()
    assert outputs[2].tobytes() == text.encode()
    assert outputs[3].tolist() == wholes
    assert outputs[4].tobytes() == np.float64(numbers).tobytes()


def test_attributes_as_text() -> None:
    kinds = {"a": "int", "b": "float", "c": "string", "d": "ints", "e": "floats"}
    values = {"a": 3, "b": 1, "c": "two words", "d": (1, -2), "e": ()}
    one = int.from_bytes(np.float64(1).tobytes(), "little")
    assert attribute_text("op", values, kinds).decode() == (
        f"a int 1 3\nb float 1 {one}\nc string 9 two words\nd ints 2 1 -2\ne floats 0 \n"
    )
    assert attribute_text("op", {"b": 1.0, "c": "x", "d": (1,)}, {}).split() == [
        *[b"b", b"float", b"1", str(one).encode(), b"c", b"string", b"1", b"x", b"d", b"ints", b"1", b"1"]
    ]


@pytest.mark.parametrize(
    ("value", "kind"), [(2**63, "int"), ("x", "int"), (1.5, "int"), ("x", "float"), (3, "string"), ("\ud800", "string")]
)
def test_attributes_that_do_not_fit_are_refused(value: Any, kind: str) -> None:
    with pytest.raises(OperatorError, match=f"op: the attribute size is .*; accepted is {kind}"):
        attribute_text("op", {"size": value}, {"size": kind})


def test_attributes_do_not_depend_on_the_locale() -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    names = ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8")
    try:
        for name in names:
            try:
                locale.setlocale(locale.LC_NUMERIC, name)
                break
            except locale.Error:
                continue
        values = {"whole": 1, "number": 0.37, "text": "", "wholes": (), "numbers": ()}
        assert custom_op(echo(**values))(tf.constant([1], tf.int64))[1].numpy().tolist() == [0.37]
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


# --- the generic operation by itself: no graph that somebody wrote may crash it --------------------------------------


def call(**changed: Any) -> Any:
    library = blend().library
    arguments: dict[str, Any] = {
        "inputs": [tf.constant(x) for x in blend_inputs()],
        "shapes": [tf.constant([3, 4], tf.int64), tf.constant([2], tf.int64)],
        "Tout": [tf.float64, tf.float64],
        "library": str(library.path),
        "operator": "blend",
        "attributes": attribute_text("blend", blend().attributes, {}),
    }
    return load_adapter().deep500_call(**{**arguments, **changed})


def test_the_generic_operation() -> None:
    for y, reference in zip(call(), blend()(*blend_inputs()), strict=True):
        np.testing.assert_array_equal(y, reference)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"library": "/nowhere/other.so", "operator": "other"}, "has no library here.*load_custom_operators"),
        ({"operator": "other"}, "has no d5_other_forward"),
        ({"attributes": "power"}, "cannot be read"),
        ({"attributes": "power int one 3\n"}, "cannot be read"),
        ({"attributes": "power int 2 3\n"}, "cannot be read"),
        ({"attributes": "power int 99999999999 3\n"}, "cannot be read"),
        ({"attributes": "power int -1 3\n"}, "cannot be read"),
        ({"attributes": "power string 9 abc\n"}, "cannot be read"),
        ({"attributes": "power int 1 3"}, "cannot be read"),
        ({"attributes": ""}, "the attribute factor was not given"),
        ({"given": [True]}, "contradicts its tensors"),
        ({"given": [True, False, True, False]}, "contradicts its tensors"),
        ({"given": [True, True, True, False]}, "4 inputs were given, accepted are 3"),
        ({"shapes": [tf.constant([3, 4], tf.int64)]}, "was given 1 shapes for 2 outputs"),
        ({"shapes": [tf.constant([-3, 4], tf.int64), tf.constant([2], tf.int64)]}, "used for shape: -3|must be >= 0"),
        ({"shapes": [tf.constant(3, tf.int64), tf.constant([2], tf.int64)]}, "must be a vector|must be rank 1"),
        ({"shapes": [tf.constant([2**40, 2**40], tf.int64), tf.constant([2], tf.int64)]}, "more than 2|used for shape"),
        ({"Tout": [tf.float64, tf.string]}, "was given string; accepted are"),
        ({"Tout": [tf.float64, tf.float32]}, "dtype|float32"),
        ({"inputs": [tf.constant("text")] * 3}, "was given string; accepted are"),
        ({"inputs": [], "shapes": [], "Tout": [tf.float64]}, "no shape of output 0 and no input that has it"),
    ],
)
def test_the_generic_operation_refuses(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises((tf.errors.OpError, ValueError), match=reason):
        call(**changed)
    with pytest.raises((tf.errors.OpError, ValueError), match=reason):
        tf.function(lambda: call(**changed), autograph=False)()


def test_a_backward_that_was_promised_and_is_missing() -> None:
    x = tf.constant([0.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = custom_op(raw())(x)
    with pytest.raises(OperatorError, match="has no d5_raw_backward"):
        tape.gradient(y, x)


# --- what is learned of inputs is kept -------------------------------------------------------------------------------


def test_infer_is_asked_once_for_shapes_and_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    op = exponential()
    asked = []
    infer = op.infer_outputs
    monkeypatch.setattr(op, "infer_outputs", lambda shapes, dtypes: asked.append(shapes) or infer(shapes, dtypes))
    monkeypatch.setattr("deep500.frameworks.tensorflow._native_operator._MOST_KNOWN", 3)
    function = custom_op(op)
    for size in (1, 2, 1, 2, 1):
        function(tf.zeros(size))
    assert asked == [[(1,)], [(2,)]]
    function(tf.zeros(1, tf.float64))
    for size in (3, 3, 2, 1):  # there is room for three
        assert function(tf.zeros(size)).shape == [size]
    assert asked == [[(size,)] for size in (1, 2, 1, 3, 2, 1)]


def test_an_elementwise_operator_adds_one_node() -> None:
    graph = traced(custom_op(exponential()), ([None, None], tf.float32)).get_concrete_function().graph
    run = tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(), [graph.outputs[0].op.name])
    assert sorted(node.op for node in run.node) == ["Deep500Call", "Identity", "Placeholder"]
