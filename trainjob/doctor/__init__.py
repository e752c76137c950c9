"""Checks whether a cluster can run TrainJobs, and names the command that repairs each problem."""
