"""Data parallel training as a PyTorch user writes it: ``DistributedDataParallel`` over gloo, or mpi4py by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from mpi4py import MPI
from torch import distributed, nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention
from torch.nn.parallel import DistributedDataParallel

from benchmarks.native.pytorch import Block, LeNet

__all__ = ["exchange_gloo", "exchange_per_tensor", "step_native", "step_per_tensor"]

RATE, MOMENTUM = 0.01, 0.9


class ResNet18(nn.Module):
    """The residual network of 18 layers for ImageNet."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        """Declare the layers for samples of ``shape`` (C, H, W)."""
        super().__init__()
        self.conv = nn.Conv2d(shape[0], 64, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(64)
        sizes = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.blocks = nn.Sequential(*(b for i, o, s in sizes for b in (Block(i, o, s), Block(o, o, 1))))
        self.classifier = nn.Linear(512, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 3, 2, 1)
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(self.blocks(x), 1), 1))


MODELS: dict[str, tuple[type[nn.Module], int]] = {"lenet": (LeNet, 10), "resnet18": (ResNet18, 1000)}

Step = Callable[[], float]


def connect() -> None:
    """Connect the ranks by gloo."""
    if distributed.is_initialized():
        return
    comm = MPI.COMM_WORLD
    store = distributed.TCPStore("127.0.0.1", 0, comm.size, True, wait_for_workers=False) if comm.rank == 0 else None
    port = comm.bcast(store.port if store is not None else None)
    store = store or distributed.TCPStore("127.0.0.1", port, comm.size, False)
    distributed.init_process_group("gloo", store=store, rank=comm.rank, world_size=comm.size)


def step_native(model: str, batch: Mapping[str, np.ndarray]) -> Step:
    """Return a function that trains on a minibatch by ``DistributedDataParallel`` and returns the loss."""
    connect()
    # Buffers are not broadcast at each step, which Deep500 does not do either.
    return _step(_network(model, batch), batch, wrap=lambda n: DistributedDataParallel(n, broadcast_buffers=False))


def step_per_tensor(model: str, batch: Mapping[str, np.ndarray]) -> Step:
    """Return a function that trains on a minibatch with an allreduce a tensor through copies in NumPy."""
    network = _network(model, batch)
    parameters = list(network.parameters())
    return _step(network, batch, exchange=lambda: _mean_per_tensor([p.grad for p in parameters]))


def exchange_gloo(tensors: list[np.ndarray]) -> Callable[[], None]:
    """Return a function that averages tensors over the ranks by gloo, in one call."""
    connect()
    flat = torch.from_numpy(np.concatenate([tensor.reshape(-1) for tensor in tensors]))

    def exchange() -> None:
        distributed.all_reduce(flat)
        flat.div_(distributed.get_world_size())

    return exchange


def exchange_per_tensor(tensors: list[np.ndarray]) -> Callable[[], None]:
    """Return a function that averages tensors over the ranks, with an allreduce a tensor through copies in NumPy."""
    gradients = [torch.from_numpy(tensor.copy()) for tensor in tensors]
    return lambda: _mean_per_tensor(gradients)


def _mean_per_tensor(gradients: list[torch.Tensor]) -> None:
    comm = MPI.COMM_WORLD
    for gradient in gradients:
        array = gradient.numpy().copy()
        total = np.empty_like(array)
        comm.Allreduce(array, total)
        gradient.copy_(torch.from_numpy(total / comm.size))


def _network(model: str, batch: Mapping[str, np.ndarray]) -> nn.Module:
    kind, classes = MODELS[model]
    return kind(batch["input"].shape[1:], classes).train()


def _step(
    network: nn.Module,
    batch: Mapping[str, np.ndarray],
    wrap: Callable[[nn.Module], nn.Module] = lambda network: network,
    exchange: Callable[[], None] = lambda: None,
) -> Step:
    forward = wrap(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM)

    def step() -> float:
        loss = F.cross_entropy(forward(torch.from_numpy(batch["input"])), torch.from_numpy(batch["label"]))
        loss.backward()
        exchange()
        optimizer.step()
        # Not at the begin: gradients that stay in the heap until then are in the way of the other implementations'
        # activations, which have to map memory anew at each step (5 % of one of ResNet-18 with minibatches of 32).
        optimizer.zero_grad()
        return loss.item()

    return step
