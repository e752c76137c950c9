"""Answers requests with a trained classifier, over HTTP: on this machine, or with Ray Serve on a cluster."""
