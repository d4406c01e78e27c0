"""A recipe for training a residual network with an LSTM over time on UCF101 (13,320 videos of 101 actions).

The acceptable accuracy is the lower end of what D. Tran et al., "ConvNet architecture search for spatiotemporal feature
learning", arXiv:1708.05038, 2017, report for convolutional networks that are trained on UCF101 alone, as this one is:
41 to 44 %. (Networks that have seen other data before reach far more.)
"""

import deep500 as d5
from recipes.recipe import run_recipe


class OnVideos:
    """An augmentation of images that does the same to all frames of a video, ``[N, T, C, H, W]``."""

    def __init__(self, augmentation):
        """Wrap an augmentation."""
        self.augmentation = augmentation
        self.input_node = "input"

    def set_dataset_nodes(self, input_node, label_node):
        """Say for which input of the network the videos are."""
        self.input_node = input_node
        self.augmentation.set_dataset_nodes(input_node, label_node)

    def set_random_stream(self, stream):
        """Pass on what the random choices come from."""
        self.augmentation.set_random_stream(stream)

    def __call__(self, batch):
        """Return the minibatch with other videos: to the augmentation, frames are further channels."""
        videos = batch[self.input_node]
        number, frames, channels, height, width = videos.shape
        images = videos.reshape(number, frames * channels, height, width)
        changed = self.augmentation({**batch, self.input_node: images})
        size = changed[self.input_node].shape[2:]
        return {**changed, self.input_node: changed[self.input_node].reshape(number, frames, channels, *size)}


# Fixed Components
FIXED = {
    "model": "resnet_lstm",
    "dataset": "ucf101",
    "train_sampler": d5.ShuffleSampler,
    "train_sampler_kwargs": dict(drop_last_batch=True),
}

# Mutable Components
MUTABLE = {
    "model_kwargs": dict(depth=18, width=64, hidden=256, dropout=0.5),
    "dataset_kwargs": dict(frames=16, size=112),
    "train_transformations": [
        OnVideos(d5.datasets.RandomCrop(112, padding=12, mode="edge")),
        OnVideos(d5.datasets.HorizontalFlip()),
    ],
    "input_pipeline": dict(workers=8),
    "epochs": 100,
    "batch_size": 32,
    "executor": "pytorch",
    "executor_kwargs": dict(device=d5.GPUDevice()),
    "optimizer": "adamw",
    "optimizer_kwargs": dict(learning_rate=5e-4, weight_decay=0.05, clip_norm=5.0),
    "schedule": {"learning_rate": dict(name="cosine", warm_up_steps=1000)},
    "seed": 0,
}

# Acceptable Metrics
METRICS = [
    (d5.TestAccuracy(), 41.0),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
