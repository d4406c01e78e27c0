"""Derivatives of products of matrices."""

from __future__ import annotations

import string

import numpy as np

from deep500.networks.differentiation.builder import Value
from deep500.networks.differentiation.reverse_pass import ReversedNode
from deep500.networks.differentiation.rule_table import reverse_rule

__all__: list[str] = []

Gradients = list[Value | None]


@reverse_rule("MatMul")
def mat_mul(node: ReversedNode, g: Value) -> Gradients:
    """``dA = G B^T, dB = A^T G``, summed over what was broadcast. Source: ONNX MatMul-13."""
    write, a, b = node.builder, node.input(0), node.input(1)
    rank_a, rank_b = a.rank, b.rank
    rows = a if rank_a > 1 else write.op("Unsqueeze", a, write.ints(0))
    columns = b if rank_b > 1 else write.op("Unsqueeze", b, write.ints(1))
    if rank_b == 1:
        g = write.op("Unsqueeze", g, write.ints(-1))
    if rank_a == 1:
        g = write.op("Unsqueeze", g, write.ints(-2))
    by_a = by_b = None
    if node.wants(0):
        by_a = write.sum_to(write.op("MatMul", g, _transposed(columns, max(rank_b, 2))), a)
    if node.wants(1) and rank_b == 2 and rank_a > 2:
        # One product of matrices rather than one for each entry of the batch and their sum.
        long, flat = write.op("Flatten", rows, axis=-1), write.op("Flatten", g, axis=-1)
        by_b = write.reshape_like(write.op("Gemm", long, flat, transA=1), b)
    elif node.wants(1):
        product = write.op("MatMul", _transposed(rows, max(rank_a, 2)), g)
        by_b = write.sum_to(write.op("Squeeze", product, write.ints(-1)) if rank_b == 1 else product, b)
    return [by_a, by_b]


def _transposed(matrices: Value, rank: int) -> Value:
    return matrices.builder.op("Transpose", matrices, perm=[*range(rank - 2), rank - 1, rank - 2])


@reverse_rule("Gemm", since=7)
def gemm(node: ReversedNode, g: Value) -> Gradients:
    """``dA = alpha G B'^T, dB = alpha A'^T G, dC = beta G``, transposed as A and B are. Source: ONNX Gemm-13."""
    write, a, b, c = node.builder, node.input(0), node.input(1), node.optional(2)
    alpha, is_a, is_b = node.get("alpha", 1.0), node.get("transA", 0), node.get("transB", 0)
    by_a = by_b = by_c = None
    if node.wants(0):
        by_a = (
            write.op("Gemm", b, g, alpha=alpha, transA=is_b, transB=1)
            if is_a
            else write.op("Gemm", g, b, alpha=alpha, transB=1 - is_b)
        )
    if node.wants(1):
        by_b = (
            write.op("Gemm", g, a, alpha=alpha, transA=1, transB=is_a)
            if is_b
            else write.op("Gemm", a, g, alpha=alpha, transA=1 - is_a)
        )
    if c is not None and node.wants(2):
        beta = node.get("beta", 1.0)
        by_c = write.sum_to(g if beta == 1.0 else g * beta, c)
    return [by_a, by_b, by_c]


@reverse_rule("Einsum")
def einsum(node: ReversedNode, g: Value) -> Gradients:
    """``dX_i``: the sum over all indices that X_i does not have. Source: ONNX Einsum-12."""
    terms, result = _labels(node)
    return [_einsum_input(node, g, terms, result, i) if node.wants(i) else None for i in range(node.count)]


def _einsum_input(node: ReversedNode, g: Value, terms: list[str], result: str, index: int) -> Value:
    write, x, own = node.builder, node.input(index), terms[index]
    others = [i for i in range(node.count) if i != index]
    known = set(result).union(*(terms[i] for i in others))
    unique = "".join(dict.fromkeys(own))
    present = "".join(label for label in unique if label in known)
    equation = ",".join([result, *(terms[i] for i in others)]) + "->" + present
    made = write.op("Einsum", g, *(node.input(i) for i in others), equation=equation)
    # An index that only X_i has was summed over: every element gets the same.
    absent = [unique.index(label) for label in unique if label not in known]
    if absent:
        made = write.op("Unsqueeze", made, write.ints(*absent))
    if unique == own:
        return _resized(made, x)
    # A repeated index reads a diagonal: the gradient is there, and zero elsewhere.
    spread = write.op("Unsqueeze", made, write.ints(*(i for i in range(len(own)) if own[i] in own[:i])))
    mask: Value | None = None
    for i, label in enumerate(own):
        first = own.index(label)
        if first != i:
            same = _position(x, first, len(own)).equals(_position(x, i, len(own)))
            mask = same if mask is None else write.op("And", mask, same)
    assert mask is not None
    return _resized(write.where(mask, spread, 0), x)


def _resized(made: Value, x: Value) -> Value:
    """Repeat where only x has several entries, and sum where x was repeated."""
    return x.builder.sum_to(x.builder.op("Expand", made, x.builder.shape(x)), x)


def _position(x: Value, axis: int, rank: int) -> Value:
    """Return the index along an axis, in a shape that broadcasts with x."""
    write = x.builder
    size = write.op("Squeeze", write.size(x, axis), write.ints(0))
    positions = write.op("Range", write.constant(0), size, write.constant(1))
    return write.reshape(positions, write.ints(*(-1 if i == axis else 1 for i in range(rank))))


def _labels(node: ReversedNode) -> tuple[list[str], str]:
    """Return the indices of every input and of the result; an ellipsis is replaced by letters of its own."""
    equation = node.attributes["equation"].replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    free = [c for c in string.ascii_letters if c not in equation]
    longest = 0
    for i, term in enumerate(terms):
        if "..." in term:
            count = node.input(i).rank - len(term.replace("...", ""))
            longest = max(longest, count)
    letters = "".join(free[:longest])
    for i, term in enumerate(terms):
        if "..." in term:
            count = node.input(i).rank - len(term.replace("...", ""))
            terms[i] = term.replace("...", letters[longest - count :])
    if arrow:
        return terms, result.replace("...", letters)
    named = "".join(terms)
    once = sorted(label for label in set(named) if named.count(label) == 1 and label not in letters)
    return terms, letters + "".join(once)


@reverse_rule("Det")
def det(node: ReversedNode, g: Value) -> Value:
    """``dx = g`` times the cofactors, which exist also where the matrix has no inverse. Source: ONNX Det-22."""
    write, x = node.builder, node.input()
    shape = x.shape
    size = None if shape is None else shape[-1]
    if shape is None or not isinstance(size, int):
        raise node.refuse("of matrices of an unknown size is not differentiated; declare the shape")
    g = write.op("Unsqueeze", g, write.ints(-2, -1))
    if size <= 1:
        return write.expand_like(g, x)
    rank = len(shape)
    others = write.constant(np.array([[j for j in range(size) if j != i] for i in range(size)]))
    # [..., i, row, j, column]: without row i and column j.
    minors = write.op("Gather", write.op("Gather", x, others, axis=rank - 2), others, axis=rank)
    lead = range(rank - 2)
    apart = write.transpose(minors, *lead, rank - 2, rank, rank - 1, rank + 1)
    signs = np.fromfunction(lambda i, j: 1.0 - 2.0 * ((i + j) % 2), (size, size))
    return g * (write.op("Det", apart) * write.cast_like(write.constant(signs), g))
