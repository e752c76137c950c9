"""Derives the CustomResourceDefinition (CRD) and the reference page from the TrainJob type."""

from trainjob.crd.definition import crd

__all__ = ["crd"]
