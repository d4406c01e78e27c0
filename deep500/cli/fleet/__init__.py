"""``deep500 fleet``: one folder for its parts, one file for each verb."""
