"""Turns a dataset's URIs into examples: reads, checks, splits, cleans and tokenizes rows. Imports neither Ray nor
torch."""

from trainjob.data.batches.examples import Examples
from trainjob.data.batches.prepare import prepare_datasets, prepare_examples, read_datasets, user_errors
from trainjob.data.first_pass.fitting import Fitted, fit
from trainjob.data.first_pass.unchanged import check_unchanged
from trainjob.data.preprocessor import Preprocessor, load_preprocessor
from trainjob.data.read.fingerprint import check_same_files

__all__ = [
    "Examples",
    "Fitted",
    "Preprocessor",
    "check_same_files",
    "check_unchanged",
    "fit",
    "load_preprocessor",
    "prepare_datasets",
    "prepare_examples",
    "read_datasets",
    "user_errors",
]
