"""Running means and variances of features."""

from rankwise._kernels.machine.jit import kernel


@kernel
def add_moments(X, rows, count, mean, squares):
    """Add rows to running means and sums of squared deviations of every feature (Welford); returns the count."""
    for row in rows:
        count += 1
        for j in range(len(mean)):
            shift = X[row, j] - mean[j]
            mean[j] += shift / count
            squares[j] += shift * (X[row, j] - mean[j])
    return count
