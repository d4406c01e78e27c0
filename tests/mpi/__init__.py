"""Programs that run as ranks under ``mpiexec``, started by tests/conformance."""
