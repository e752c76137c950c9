"""Answers requests with a trained model, over HTTP: on this machine, or with Ray Serve on a cluster."""
