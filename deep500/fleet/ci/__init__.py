"""Jobs of continuous integration: which of them tell nothing new."""
