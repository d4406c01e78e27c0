"""Edge cases of SoftmaxCrossEntropyLoss; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from deep500.core.errors import OperatorError
from deep500.operators.library.softmax_cross_entropy_loss import SoftmaxCrossEntropyLoss

SCORES = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 0.0]])


def test_mean_over_ignored_labels_only_is_nan_and_has_no_gradient() -> None:
    operator = SoftmaxCrossEntropyLoss(ignore_index=-1)
    labels = np.array([-1, -1])
    node = onnx.helper.make_node("SoftmaxCrossEntropyLoss", ["s", "l"], ["y"], ignore_index=-1)
    with np.errstate(all="ignore"):
        (reference,) = ReferenceEvaluator(node).run(None, {"s": SCORES, "l": labels})

    outputs = operator.forward([SCORES, labels])
    gradients = operator.backward([np.array(1.0), None], [SCORES, labels], outputs)

    assert np.isnan(outputs[0])
    assert np.isnan(reference)
    assert outputs[0].shape == ()
    assert not gradients[0].any()


@pytest.mark.parametrize(("reduction", "expected"), [("none", [0.0, 0.0]), ("sum", 0.0)])
def test_other_reductions_of_ignored_labels_are_zero(reduction: str, expected: object) -> None:
    operator = SoftmaxCrossEntropyLoss(ignore_index=1, reduction=reduction)

    assert operator(SCORES, np.array([1, 1]))[0].tolist() == expected


def test_ignored_scores_do_not_matter() -> None:
    scores = np.array([[np.inf, -np.inf, np.nan], [3.0, 1.0, 0.0]])
    labels = np.array([-100, 0])
    operator = SoftmaxCrossEntropyLoss(ignore_index=-100)

    loss = operator(scores, labels)[0]

    np.testing.assert_allclose(loss, SoftmaxCrossEntropyLoss()(SCORES[1:], np.array([0]))[0])


def test_mean_divides_by_the_weights_that_count() -> None:
    weights = np.array([0.5, 2.0, 4.0])
    labels = np.array([0, 2])
    each = SoftmaxCrossEntropyLoss(reduction="none")(SCORES, labels, weights)[0]

    assert SoftmaxCrossEntropyLoss()(SCORES, labels, weights)[0] == pytest.approx(each.sum() / 4.5)
    assert SoftmaxCrossEntropyLoss(ignore_index=2)(SCORES, labels, weights)[0] == pytest.approx(each[0] / 0.5)


def test_large_scores_do_not_overflow() -> None:
    loss, log_prob = SoftmaxCrossEntropyLoss()(np.array([[1e4, -1e4]], np.float32), np.array([1]))

    assert loss == pytest.approx(2e4)
    assert log_prob.tolist() == [[0, -2e4]]


@pytest.mark.parametrize("label", [-1, 3])
@pytest.mark.parametrize("ignore_index", [None, 7])
def test_label_out_of_range(label: int, ignore_index: int | None) -> None:
    with pytest.raises(
        OperatorError, match=f"received the label {label} for 3 classes; accepted are labels from 0 to 2"
    ):
        SoftmaxCrossEntropyLoss(ignore_index=ignore_index)(SCORES, np.array([0, label]))


def test_gradients_flow_through_either_output_alone() -> None:
    labels = np.array([0, 2], np.int32)
    operator = SoftmaxCrossEntropyLoss(reduction="sum")
    outputs = operator.forward([SCORES, labels])
    by_log_prob = np.zeros_like(SCORES)
    by_log_prob[[0, 1], labels] = -1

    through_loss = operator.backward([np.array(1.0), None], [SCORES, labels], outputs)
    through_log_prob = operator.backward([None, by_log_prob], [SCORES, labels], outputs)

    np.testing.assert_allclose(through_loss[0], through_log_prob[0])
    assert through_loss[1] is None


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_empty_batch(reduction: str) -> None:
    scores, labels = np.zeros((0, 3, 2)), np.zeros((0, 2), np.int64)
    operator = SoftmaxCrossEntropyLoss(reduction=reduction)

    outputs = operator.forward([scores, labels])
    gradients = operator.backward([np.ones_like(outputs[0]), None], [scores, labels], outputs)

    assert outputs[0].shape == ((0, 2) if reduction == "none" else ())
    assert reduction != "mean" or np.isnan(outputs[0])
    assert gradients[0].shape == scores.shape


def test_refusals() -> None:
    with pytest.raises(OperatorError, match="labels of float64; accepted are int32 and int64"):
        SoftmaxCrossEntropyLoss()(SCORES, np.array([0.0, 1.0]))
    with pytest.raises(OperatorError, match=r"accepted are \[N, C, D1, ...\] and \[N, D1, ...\]"):
        SoftmaxCrossEntropyLoss()(SCORES, np.array([0]))
    with pytest.raises(OperatorError, match=r"weights of shape \(2,\); accepted is \(3,\)"):
        SoftmaxCrossEntropyLoss()(SCORES, np.array([0, 1]), np.ones(2))
    with pytest.raises(OperatorError, match="accepted is one of none, sum, mean"):
        SoftmaxCrossEntropyLoss(reduction="average")
