"""``python -m deep500`` is the ``deep500`` command."""

from deep500.cli.main import main

if __name__ == "__main__":
    main()
