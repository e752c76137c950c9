"""What reaches the cluster that a TrainJob is in, with nothing but the standard library."""
