"""Consistent decentralised training."""

from __future__ import annotations

from deep500.distributed.flat_buffers import Bucket
from deep500.distributed.scheme import Scheme, StepContext

__all__ = ["AllReduce"]


class AllReduce(Scheme):
    r"""Every rank updates with the mean of all ranks' gradients.

    .. math:: \bar g_t = \frac{1}{p} \sum_{i=1}^{p} g_t^{(i)}

    With minibatches of equal size it is the gradient of one minibatch of all samples: p ranks train as one process
    with p times the batch, whatever the base optimizer is. A bucket is exchanged while backward goes on.

    Source: X. Lian et al. name it C-PSGD in "Can Decentralized Algorithms Outperform Centralized Algorithms?",
    NeurIPS 2017; P. Goyal et al., "Accurate, Large Minibatch SGD", 2017.
    """

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        """Begin to average a bucket."""
        context.mean_later(bucket.array)
