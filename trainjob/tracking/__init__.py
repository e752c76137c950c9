"""Writes a run to experiment trackers, from the run's own files and beside training: one file for each tracker."""
