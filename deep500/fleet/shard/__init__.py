"""Test suites on GPU runners: how many GPUs each test needs, and which runner should run it."""
