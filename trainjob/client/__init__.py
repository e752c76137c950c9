"""Training from Python, and a Python client of the TrainJobs on a cluster and their runs."""
