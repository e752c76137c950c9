"""Prepared rows, in memory or from Ray Data, and the batches that are made of them."""
