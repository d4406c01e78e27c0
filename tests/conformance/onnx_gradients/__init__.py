"""The gradient of every differentiable operator, in every framework, against differences of the reference's forward.

``cases.py`` says what a case is, ``harness.py`` checks one, and one file an operator family holds the strategies.
"""
