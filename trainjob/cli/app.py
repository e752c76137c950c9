"""The `trainjob` command. Each command is a file beside this one and imports what it needs when it runs."""

import atexit
import errno
import faulthandler
import os
import sys
import warnings
from textwrap import dedent, indent
from typing import Annotated, Any

import typer

from trainjob import interrupts
from trainjob.cli.baseline import baseline
from trainjob.cli.cancel import cancel
from trainjob.cli.compare import compare
from trainjob.cli.compress import compress
from trainjob.cli.dashboard import dashboard
from trainjob.cli.delete import delete
from trainjob.cli.describe import describe
from trainjob.cli.doctor import doctor
from trainjob.cli.evaluate import evaluate
from trainjob.cli.events import events
from trainjob.cli.get import get
from trainjob.cli.init import init
from trainjob.cli.list import list_
from trainjob.cli.logs import logs
from trainjob.cli.merge import merge
from trainjob.cli.output import OutputError, give_up_output, say
from trainjob.cli.plan import plan
from trainjob.cli.predict import predict
from trainjob.cli.pull import pull
from trainjob.cli.push import push
from trainjob.cli.report import report
from trainjob.cli.run import run
from trainjob.cli.serve import serve
from trainjob.cli.submit import submit
from trainjob.cli.suspend import resume, suspend
from trainjob.cli.top import top
from trainjob.cli.track import track
from trainjob.cli.validate import validate
from trainjob.cli.version import print_version, version
from trainjob.cli.wait import wait
from trainjob.errors import Alarm, Notice, UserError

app = typer.Typer(
    name="trainjob",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
EXAMPLES = {
    init: """
        trainjob init rows.csv
        trainjob init images --output trainjob.yaml
        trainjob init customers.parquet --label churned --output trainjob.yaml""",
    run: """
        trainjob run trainjob.yaml
        trainjob run trainjob.yaml --set spec.training.epochs=3 --workers 1
        trainjob run trainjob.yaml --set 'spec.storage={uri: s3://runs}'
        trainjob run trainjob.yaml --fresh""",
    validate: """
        trainjob validate trainjob.yaml
        trainjob validate trainjob.yaml --set spec.dataset.label=tag
        trainjob validate trainjob.yaml --data""",
    plan: """
        trainjob plan trainjob.yaml
        trainjob plan trainjob.yaml --gpu-memory 80Gi
        trainjob plan trainjob.yaml --measure
        trainjob plan trainjob.yaml --set spec.training.batchSize=64 --json""",
    evaluate: """
        trainjob evaluate runs/tags holdout.csv
        trainjob evaluate runs/tags s3://data/holdout.parquet --json
        trainjob evaluate runs/tags new.csv --on-bad-rows drop""",
    predict: """
        trainjob predict runs/tags --text "Quantum dots"
        trainjob predict tags new.csv --namespace team-a
        trainjob predict runs/tags new.csv --output predictions.parquet
        trainjob predict runs/tags new.csv --cascade 0.8
        trainjob predict s3://runs/digits --image 7.png --image 9.png""",
    baseline: """
        trainjob baseline runs/tags
        trainjob baseline runs/tags --set 'spec.baselines={tfidf: {}}'
        trainjob baseline s3://runs/tags --json""",
    compress: """
        trainjob compress runs/tags --int8
        trainjob compress runs/tags --prune 0.5 --onnx --int8""",
    merge: """
        trainjob merge runs/answers models/answers
        trainjob merge s3://runs/answers s3://models/answers""",
    compare: """
        trainjob compare runs/tags runs/tags-small
        trainjob compare runs/tags s3://runs/tags --output compared.html""",
    serve: """
        trainjob serve runs/tags
        trainjob serve runs/tags --variant int8 --port 8080
        trainjob serve s3://runs/tags --manifest --set spec.pods.image=registry/trainer:0.1.0""",
    push: """
        trainjob push runs/tags my-team/tags""",
    pull: """
        trainjob pull tags
        trainjob pull tags models/tags --what all --namespace team-a
        trainjob pull s3://runs/tags-4dec4c9c tags --what report""",
    report: """
        trainjob report runs/tags
        trainjob report s3://runs/tags --output report.html""",
    track: """
        trainjob track tags --namespace team-a
        trainjob track runs/tags --set 'spec.tracking=[{mlflow: {uri: http://localhost:5000}}]'""",
    submit: """
        trainjob submit trainjob.yaml
        trainjob submit trainjob.yaml --code .
        trainjob submit trainjob.yaml --set spec.training.epochs=3 --name-suffix --wait""",
    list_: """
        trainjob list
        trainjob list --watch
        trainjob list --all-namespaces --output wide
        trainjob list runs""",
    get: """
        trainjob get tags
        trainjob get tags --output yaml
        trainjob get tags tags-small --namespace team-a --watch""",
    describe: """
        trainjob describe tags
        trainjob describe runs/tags""",
    events: """
        trainjob events tags --namespace team-a""",
    top: """
        trainjob top
        trainjob top --all-namespaces""",
    logs: """
        trainjob logs tags --follow
        trainjob logs tags --rank all --grep loss
        trainjob logs runs/tags --rank 1 --attempt 2""",
    dashboard: """
        trainjob dashboard tags
        trainjob dashboard tags --no-browser --port 8265""",
    wait: """
        trainjob wait tags
        trainjob wait tags --for Running --timeout 30m""",
    suspend: """
        trainjob suspend tags""",
    resume: """
        trainjob resume tags""",
    cancel: """
        trainjob cancel tags
        trainjob cancel runs/tags""",
    delete: """
        trainjob delete tags tags-small""",
    doctor: """
        trainjob doctor
        trainjob doctor trainjob.yaml --namespace team-a
        trainjob doctor --storage s3://runs --secret s3""",
    version: """
        trainjob version""",
}
"""The commands, in the order in which the help lists them, and examples of each."""

for command, examples in EXAMPLES.items():
    epilog = f"\b\nExamples:\n{indent(dedent(examples).strip(), '  ')}"
    app.command(command.__name__.rstrip("_"), epilog=epilog)(command)


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train a model from one YAML file, on this machine or on a Kubernetes cluster."""


_show_warning = warnings.showwarning


_noticed: set[str] = set()


def _show_notice(message: Warning | str, category: type[Warning], *location: Any) -> None:
    """Shows each notice once, on its own line, in red if it casts doubt on the result. Shows other warnings as Python
    does."""
    if issubclass(category, Notice):
        if str(message) in _noticed:  # Python forgets what it has shown whenever a library changes the filters
            return
        _noticed.add(str(message))
    if issubclass(category, Alarm):
        say(f"warning: {message}", error=True, color=typer.colors.RED)
    elif issubclass(category, Notice):
        say(f"note: {message}", error=True, color=typer.colors.YELLOW)
    else:
        _show_warning(message, category, *location)


def _end(code: int) -> None:
    """Ends the process without finalizing Python. Meanwhile a thread of pyarrow that releases a Python object would
    abort the process, nanobind list hundreds of triton's objects as leaked, and libraries take seconds to unload."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Runs the command line. A UserError ends it with only its message, and with the error's exit code; a signal with
    128 plus the signal's number; output that cannot be written with 1. A crash of native code prints a traceback."""
    faulthandler.enable()
    code, unwritten = 1, None  # after a traceback
    atexit.register(lambda: _end(code))  # the first to be registered is called last
    interrupts.handle_signals()
    warnings.showwarning = _show_notice  # pyrefly: ignore[bad-assignment]
    try:
        app()
    except UserError as error:
        say(str(error), error=True, color=typer.colors.RED)
        code = error.exit_code
    except KeyboardInterrupt:  # before or after typer's part
        code = interrupts.exit_code()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code and interrupts.received() is not None:  # typer exits with the same code whatever the signal
            code = interrupts.exit_code()
    except OutputError as error:
        unwritten = error
    given_up = give_up_output()
    unwritten = unwritten or given_up
    if unwritten is not None:
        code = 1
        if unwritten.errno != errno.EPIPE:  # the reader, such as `head`, has enough
            say(f"the output cannot be written: {unwritten.strerror}", error=True, color=typer.colors.RED)
    sys.exit(code)
