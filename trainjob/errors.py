"""Errors that are the user's to mend: shown as one message, never as a traceback."""


class UserError(Exception):
    """What is wrong, where, and what to do about it, in words for the person who wrote the TrainJob."""


class DataError(UserError):
    """The dataset cannot be used as it is; the message names the file and, where there is one, the row."""


class StorageError(UserError):
    """The storage folder cannot be read or written."""
