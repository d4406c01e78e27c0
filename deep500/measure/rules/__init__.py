"""The rules that result documents are checked against, one file each (see :mod:`deep500.measure.rule`)."""
