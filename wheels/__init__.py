"""What is built from the sources: packs of compiled kernels, and the wheels that carry them."""
