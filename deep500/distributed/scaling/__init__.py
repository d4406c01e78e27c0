"""How a training step scales with ranks: measured in launches of their own, and predicted for ranks there are none."""
