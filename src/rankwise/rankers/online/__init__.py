"""Online rankers: perceptrons, online gradient descent with any loss, and the classification perceptron."""
