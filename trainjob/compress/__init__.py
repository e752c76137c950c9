"""Smaller models made of a run's: pruned, exported, quantized; and what each of them is worth."""
