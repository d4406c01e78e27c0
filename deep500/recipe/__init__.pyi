from .experiment import experiment_description, experiment_hash
from .loading import load_recipe
from .overrides import override_recipe
from .recipe import Recipe
from .reporter import ConsoleReporter, Reporter
from .result import MetricResult, RecipeResult, write_result
from .runner import execute_recipe, run_recipe
from .shipped import shipped_recipes

__all__ = [
    "ConsoleReporter",
    "MetricResult",
    "Recipe",
    "RecipeResult",
    "Reporter",
    "execute_recipe",
    "experiment_description",
    "experiment_hash",
    "load_recipe",
    "override_recipe",
    "run_recipe",
    "shipped_recipes",
    "write_result",
]
