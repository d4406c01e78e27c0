"""PyTorch's own optimizers with the kernels that PyTorch fuses, against its loops over parameters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from deep500.frameworks import pytorch
from deep500.networks import create_model

FUSED = [
    "GradientDescent",
    "MomentumOptimizer",
    "AdaGradOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "AMSGradOptimizer",
]


def executor(dtype="float32"):
    network = create_model("mlp", classes=3, shape=(4,), hidden=(5,), dtype=dtype)
    network.append_loss("SoftmaxCrossEntropyLoss")
    return pytorch.from_model(network)


def give_gradients(target, stream, names):
    for name in target.network.get_params():
        parameter = target.stored.tensor(name)
        gradient = torch.from_numpy(stream.normal(size=tuple(parameter.shape))).to(parameter.dtype)
        parameter.grad = gradient if name in names else None


@pytest.mark.parametrize("kind", FUSED)
def test_the_fused_kernel_is_used(kind):
    optimizer = getattr(pytorch, kind)(executor())

    assert all(group["fused"] for group in optimizer.native.param_groups)


@pytest.mark.parametrize("kind", [*FUSED, "RMSPropOptimizer"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_parameter_may_get_its_first_gradient_late(kind, dtype):
    fused, looped = getattr(pytorch, kind)(executor(dtype)), getattr(pytorch, kind)(executor(dtype))
    looped.native.param_groups[0].update(fused=False, foreach=False)
    names = list(fused.network.get_params())
    for optimizer in (fused, looped):
        stream = np.random.default_rng(0)
        for known in (names[:1], names[:2], names):
            give_gradients(optimizer.executor, stream, known)
            optimizer.apply_gradients()

    tolerance = 1e-6 if dtype == "float32" else 1e-14
    for name in names:
        expected = looped.executor.fetch(name)
        np.testing.assert_allclose(
            fused.executor.fetch(name), expected, rtol=0, atol=tolerance * np.abs(expected).max()
        )


def test_momentum_that_begins_later():
    optimizer = pytorch.MomentumOptimizer(executor(), momentum=0.0)
    names = list(optimizer.network.get_params())
    stream = np.random.default_rng(0)
    give_gradients(optimizer.executor, stream, names)
    optimizer.apply_gradients()
    optimizer.momentum = 0.9
    before = optimizer.executor.fetch(names[0])
    give_gradients(optimizer.executor, stream, names[:1])
    optimizer.apply_gradients()
    gradient = optimizer.executor.stored.tensor(names[0]).grad.numpy()

    np.testing.assert_allclose(optimizer.executor.fetch(names[0]), before - 0.01 * gradient, rtol=1e-6, atol=1e-7)
