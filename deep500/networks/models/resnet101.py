"""ResNet-101, the residual network of 101 layers for ImageNet. Source: see ``imagenet_resnet``."""

from deep500.networks.models._depths import of_depth
from deep500.networks.models.imagenet_resnet import imagenet_resnet

__all__ = ["resnet101"]

resnet101 = of_depth(imagenet_resnet, "resnet101", 101)
