"""Online rankers: perceptrons and online gradient descent."""
