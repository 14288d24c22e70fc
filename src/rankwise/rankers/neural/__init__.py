"""A small neural network under any loss of the package."""
