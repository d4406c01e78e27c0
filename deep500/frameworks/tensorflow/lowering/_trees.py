"""Ensembles of decision trees: all trees are descended at once, one level a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__ = ["tree_ensemble"]

#: The comparisons by their number, up to the one with a set of members.
_COMPARISONS: tuple[Any, ...] = (
    tf.less_equal,
    tf.less,
    tf.greater_equal,
    tf.greater,
    tf.equal,
    tf.not_equal,
)
_MEMBER = len(_COMPARISONS)


@lowerings.register("TreeEnsemble", since=5, domain="ai.onnx.ml")
def tree_ensemble(node: OperatorNode, x: tf.Tensor) -> tf.Tensor:
    """Return what the leaves say that the trees lead to, aggregated for each target: ``[N, targets]``.

    Args:
        node: The node.
        x: Features, ``[N, F]``.

    Source: ONNX TreeEnsemble-5 of ai.onnx.ml.
    """
    attributes = node.attributes
    nodes = len(attributes["nodes_featureids"])
    following = [
        np.array(attributes[f"nodes_{way}nodeids"]) + nodes * np.array(attributes[f"nodes_{way}leafs"], bool)
        for way in ("false", "true")
    ]
    roots = np.array(attributes["tree_roots"], np.int64)
    place = tf.tile(tf.constant(roots, tf.int32)[None, :], [tf.shape(x)[0], 1])
    # A leaf, numbered behind the nodes, leads to itself.
    leaves = np.arange(nodes, nodes + len(attributes["leaf_weights"]))
    ways = tf.constant(np.stack([np.concatenate([ids, leaves]) for ids in following], 1), tf.int32)
    for _ in range(_depth(following, roots, nodes)):
        holds = _holds(node, x, tf.minimum(place, nodes - 1))
        place = tf.gather_nd(ways, tf.stack([place, tf.cast(holds, tf.int32)], -1))
    leaf = place - nodes
    weights = tf.gather(tf.constant(np.array(attributes["leaf_weights"]), x.dtype), leaf)
    targets = tf.gather(tf.constant(attributes["leaf_targetids"], tf.int32), leaf)
    return _transformed(node, _aggregated(node, weights, targets, len(roots)))


def _depth(following: list[NDArray[Any]], roots: NDArray[Any], nodes: int) -> int:
    """Return how many steps lead from a root to the farthest leaf."""
    level, steps = {int(root) for root in roots}, 0
    while level:
        level = {int(ids[index]) for index in level for ids in following if ids[index] < nodes}
        steps += 1
        if steps > nodes:
            raise OperatorError("A tree of the ensemble leads back to a node that it came from.")
    return steps


def _holds(node: OperatorNode, x: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
    """Return whether the conditions of nodes hold: ``[N, trees]``."""
    attributes = node.attributes
    features = tf.gather(tf.constant(attributes["nodes_featureids"], tf.int32), place)
    values = tf.gather(x, features, axis=1, batch_dims=1)
    splits = tf.gather(tf.constant(np.array(attributes["nodes_splits"]), x.dtype), place)
    modes = np.array(attributes["nodes_modes"], np.int32)
    mode = tf.gather(tf.constant(modes), place)
    holds = tf.zeros_like(values, tf.bool)
    for number in sorted(set(modes.tolist())):
        if number == _MEMBER:
            members = tf.gather(tf.constant(_members(node, modes), x.dtype), place)
            compared = tf.reduce_any(tf.equal(members, values[..., None]), -1)
        else:
            compared = _COMPARISONS[number](values, splits)
        holds = tf.where(mode == number, compared, holds)
    tracks = attributes.get("nodes_missing_value_tracks_true")
    if tracks:
        true = tf.gather(tf.constant(np.array(tracks, bool)), place)
        holds = tf.logical_or(holds, tf.logical_and(true, tf.math.is_nan(values)))
    return holds


def _members(node: OperatorNode, modes: NDArray[Any]) -> NDArray[Any]:
    """Return the members of the sets, a row a node, filled up with NaN, which is equal to nothing."""
    given = np.ravel(node.attributes["membership_values"])
    ends = np.flatnonzero(np.isnan(given))
    sets = np.split(given, ends + 1)
    sizes = [int(np.sum(~np.isnan(entries))) for entries in sets]
    rows = np.full((len(modes), max([1, *sizes])), np.nan)
    for index, entries in zip(np.flatnonzero(modes == _MEMBER), sets, strict=False):
        found = entries[~np.isnan(entries)]
        rows[index, : len(found)] = found
    return rows


def _aggregated(node: OperatorNode, weights: tf.Tensor, targets: tf.Tensor, trees: int) -> tf.Tensor:
    """Return sum (1), mean (0), minimum (2) or maximum (3) of the weights of each target."""
    function = int(node.attributes.get("aggregate_function", 1))
    mask = tf.equal(targets[..., None], tf.range(int(node.attributes["n_targets"])))
    given = weights[..., None]
    if function in (0, 1):
        total = tf.reduce_sum(tf.where(mask, given, tf.zeros_like(given)), 1)
        return total / trees if function == 0 else total
    neutral = given.dtype.max if function == 2 else given.dtype.min
    reduced = tf.reduce_min if function == 2 else tf.reduce_max
    return reduced(tf.where(mask, given, tf.constant(neutral, given.dtype)), 1)


def _transformed(node: OperatorNode, scores: tf.Tensor) -> tf.Tensor:
    """Return the scores: as they are (0), or softmax (1), logistic (2), softmax of what is not 0 (3), or probit (4)."""
    function = int(node.attributes.get("post_transform", 0))
    if function == 1:
        return tf.nn.softmax(scores)
    if function == 2:
        return tf.math.sigmoid(scores)
    if function == 3:
        is_zero = tf.equal(scores, 0)
        lowest = tf.constant(-np.inf, scores.dtype)
        chosen = tf.nn.softmax(tf.where(is_zero, lowest, scores))
        return tf.where(is_zero, tf.zeros_like(scores), chosen)
    return tf.math.ndtri(scores) if function == 4 else scores
