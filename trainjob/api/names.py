"""Names in the cluster that the operator and its clients share."""

from trainjob.api.trainjob import GROUP

UID_LABEL = f"{GROUP}/uid"
"""On a RayJob and its pods: the TrainJob's UID."""
SUBMITTER_CONTAINER = "ray-job-submitter"
"""Container of the submitter pod, which submits the entry point and prints the driver's log."""
