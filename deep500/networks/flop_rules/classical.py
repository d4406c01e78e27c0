"""Models of classical machine learning."""

from __future__ import annotations

from deep500.core.errors import InvalidNetworkError
from deep500.networks.flop_rules import flop_rules
from deep500.networks.flop_rules._sizes import input_shape, input_size
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

_DOMAIN = "ai.onnx.ml"


def _samples(node: OperatorNode) -> tuple[int, int]:
    """Return the number of samples and that of their features; a single row is one sample."""
    shape = input_shape(node)
    return (shape[0], shape[1]) if len(shape) > 1 else (1, shape[0] if shape else 1)


def _length(node: OperatorNode, *names: str) -> int:
    """Return the length of the first of some attributes that is there.

    Raises:
        InvalidNetworkError: None is.
    """
    for name in names:
        if node.attributes.get(name) is not None:
            return len(node.attributes[name])
    raise InvalidNetworkError(f"{node.label} has no attribute {' or '.join(names)} to count its operations by.")


@flop_rules.register("LinearClassifier", since=1, domain=_DOMAIN)
@flop_rules.register("LinearRegressor", since=1, domain=_DOMAIN)
def linear_model(node: OperatorNode) -> int:
    """``2`` for every sample and coefficient."""
    return 2 * _samples(node)[0] * _length(node, "coefficients")


@flop_rules.register("Scaler", since=1, domain=_DOMAIN)
def scaler(node: OperatorNode) -> int:
    """Two an element: difference and product."""
    return 2 * input_size(node)


@flop_rules.register("Normalizer", since=1, domain=_DOMAIN)
def normalizer(node: OperatorNode) -> int:
    """Three an element: its magnitude, the sum or maximum, the division."""
    return 3 * input_size(node)


@flop_rules.register("Binarizer", since=1, domain=_DOMAIN)
@flop_rules.register("Imputer", since=1, domain=_DOMAIN)
def comparison(node: OperatorNode) -> int:
    """One comparison an element."""
    return input_size(node)


@flop_rules.register("FeatureVectorizer", since=1, domain=_DOMAIN)
@flop_rules.register("OneHotEncoder", since=1, domain=_DOMAIN)
def encoding(node: OperatorNode) -> int:
    """Nothing: elements are placed."""
    return 0


@flop_rules.register("SVMClassifier", since=1, domain=_DOMAIN)
@flop_rules.register("SVMRegressor", since=1, domain=_DOMAIN)
def support_vectors(node: OperatorNode) -> int:
    """For every sample and support vector ``2 F`` of the kernel, one of its function, and 2 a coefficient."""
    samples, features = _samples(node)
    vectors = len(node.attributes.get("support_vectors") or ()) // max(features, 1)
    return samples * (vectors * (2 * features + 1) + 2 * _length(node, "coefficients"))


@flop_rules.register("TreeEnsemble", since=5, domain=_DOMAIN)
@flop_rules.register("TreeEnsembleClassifier", since=1, domain=_DOMAIN)
@flop_rules.register("TreeEnsembleRegressor", since=1, domain=_DOMAIN)
def tree_ensemble(node: OperatorNode) -> int:
    """A comparison on every level of every tree, and one addition a tree, as if all trees were balanced."""
    if node.op_type == "TreeEnsemble":
        trees, leaves = _length(node, "tree_roots"), _length(node, "leaf_weights")
    else:
        trees = len(set(node.attributes.get("nodes_treeids") or ())) or 1
        leaves = list(node.attributes.get("nodes_modes") or ()).count("LEAF")
    levels = max(1, (max(leaves, 1) // trees - 1).bit_length())
    return _samples(node)[0] * trees * (levels + 1)
