"""ResNet-50, the residual network of 50 layers for ImageNet. Source: see ``imagenet_resnet``."""

from deep500.networks.models._depths import of_depth
from deep500.networks.models.imagenet_resnet import imagenet_resnet

__all__ = ["resnet50"]

resnet50 = of_depth(imagenet_resnet, "resnet50", 50)
