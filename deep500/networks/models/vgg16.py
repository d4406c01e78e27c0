"""VGG-16, the plain network of 16 layers with 3x3 convolutions. Source: see :mod:`deep500.networks.models.vgg`."""

from deep500.networks.models._depths import of_depth
from deep500.networks.models.vgg import vgg

__all__ = ["vgg16"]

vgg16 = of_depth(vgg, "vgg16", 16)
