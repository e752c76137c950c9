"""Checks whether a cluster can run TrainJobs, and names the command that repairs what is wrong."""
