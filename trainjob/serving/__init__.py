"""Answers requests with a trained classifier, over HTTP on Ray Serve."""
