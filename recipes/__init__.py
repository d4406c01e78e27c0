"""Experiments that can be run: ``deep500 run recipes/digits_lenet.py``, or ``python recipes/digits_lenet.py``."""
