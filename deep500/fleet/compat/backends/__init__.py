"""What runs the cells of a campaign: one file each, found by its name; ``__all__`` names one class of backend."""
