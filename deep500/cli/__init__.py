"""The ``deep500`` command."""
