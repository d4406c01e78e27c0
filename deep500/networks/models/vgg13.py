"""VGG-13, the plain network of 13 layers with 3x3 convolutions. Source: see :mod:`deep500.networks.models.vgg`."""

from deep500.networks.models._depths import of_depth
from deep500.networks.models.vgg import vgg

__all__ = ["vgg13"]

vgg13 = of_depth(vgg, "vgg13", 13)
