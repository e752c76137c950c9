"""What is derived from the TrainJob type: its CustomResourceDefinition and its reference page."""

from trainjob.crd.definition import crd

__all__ = ["crd"]
