"""The `trainjob` command, also as `python -m trainjob`."""

import signal


def main() -> None:
    """Runs the command line. Until it handles signals, Ctrl-C ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from trainjob.cli.app import main as run
    from trainjob.cli.output import open_output

    open_output()
    run()


if __name__ == "__main__":
    main()
