"""The same networks and training steps as a user of each framework would write them by hand."""
