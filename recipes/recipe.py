"""What every recipe imports."""

from deep500.recipe import run_recipe

__all__ = ["run_recipe"]
