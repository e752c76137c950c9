"""Makes smaller models from a run's model (pruned, exported, quantized) and measures each of them."""
