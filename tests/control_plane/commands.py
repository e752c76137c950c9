"""Commands on TrainJobs, as a user gives them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from cluster.jobs import Jobs
from trainjob.cli.app import app
from trainjob.errors import UserError


@dataclass(frozen=True)
class Said:
    """The output of a command."""

    code: int
    out: str
    error: str

    @property
    def rows(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines()]


Command = Callable[..., Said]


def commands_in(jobs: Jobs) -> Command:
    """Runs commands in the namespace of `jobs`."""

    def run(*arguments: str, kubeconfig: Path = jobs.cluster.kubeconfig, namespace: str = jobs.namespace) -> Said:
        options = ["--namespace", namespace] if namespace else []
        done = CliRunner().invoke(app, [*arguments, *options], env={"KUBECONFIG": str(kubeconfig)})
        if isinstance(done.exception, UserError):
            return Said(done.exception.exit_code, done.stdout, str(done.exception))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    return run
