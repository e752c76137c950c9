"""`spec.code` and `spec.requirements`: a function's code and packages, equal in all attempts and on all workers."""

from trainjob.code.user_code import UserCode, prepare

__all__ = ["UserCode", "prepare"]
