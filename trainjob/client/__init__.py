"""TrainJobs on a cluster together with their runs in storage."""
