"""Names in the cluster that the operator gives and its clients look for."""

from trainjob.api.trainjob import GROUP

UID_LABEL = f"{GROUP}/uid"
"""On a RayJob and its pods: the TrainJob's UID."""
SUBMITTER_CONTAINER = "ray-job-submitter"
"""In the pod that hands the entry point to the head and prints the driver's log."""
