"""Linear rankers that learn in batch: any convex loss, its presets, ridge regression, ListNet, and given weights."""
