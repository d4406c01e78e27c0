"""Pictures of measurements, one file each (see :mod:`deep500.measure.picture`)."""
