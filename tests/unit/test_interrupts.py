"""Signals reach the code that waits, whatever library or thread they meet first. Each case is a process of its own."""

import signal
import subprocess
import sys

BEGINNING = """
import os, signal, sys, threading, time
from concurrent.futures import Future
from trainjob import interrupts

def send(number=signal.SIGINT):
    os.kill(os.getpid(), number)

interrupts.handle_signals()
"""


def run(script: str) -> str:
    command = [sys.executable, "-c", BEGINNING + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_interrupt_that_a_finalizer_drops_ends_the_next_wait():
    printed = run("""
class Finalized:
    def __del__(self):
        send()
        time.sleep(1)

sys.unraisablehook = lambda dropped: print(f"dropped {dropped.exc_type.__name__}")
finalized = Finalized()
del finalized
print("goes on")
try:
    interrupts.result_of(Future())
except KeyboardInterrupt:
    print("stops")
""")
    assert printed.splitlines() == ["dropped KeyboardInterrupt", "goes on", "stops"]


def test_a_signal_that_another_thread_receives_ends_a_wait_of_the_main_thread():
    printed = run("""
def receive():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(60)

threading.Thread(target=receive, daemon=True).start()
try:
    interrupts.result_of(Future())
except KeyboardInterrupt:
    print(interrupts.received().name, interrupts.exit_code())
""")
    assert printed.split() == ["SIGTERM", str(128 + signal.SIGTERM)]


def test_a_second_sigterm_lets_the_cleanup_finish_and_a_second_sigint_ends_it():
    printed = run("""
try:
    send(signal.SIGTERM)
except KeyboardInterrupt:
    send(signal.SIGTERM)
    print("cleans up")
    try:
        send(signal.SIGINT)
    except KeyboardInterrupt:
        print(interrupts.received().name)
""")
    assert printed.splitlines() == ["cleans up", "SIGTERM"]


def test_a_librarys_handler_is_replaced_and_an_ignored_signal_stays_ignored():
    printed = run("""
signal.signal(signal.SIGTERM, lambda *_: print("the library's"))
signal.signal(signal.SIGINT, signal.SIG_IGN)
interrupts.handle_again()
send(signal.SIGINT)
try:
    send(signal.SIGTERM)
except KeyboardInterrupt:
    print(interrupts.received().name)
""")
    assert printed.splitlines() == ["SIGTERM"]


def test_pyarrow_loses_none_while_it_reads():
    """pyarrow loses about four of 100 signals: see findings/pyarrow-loses-sigint.sh."""
    printed = run("""
import io
import trainjob.data.read.tables
from pyarrow import csv

table, main = b"a,b\\n" + b"1,2\\n" * 2000, threading.get_ident()
raised = 0
for turn in range(100):
    sender = threading.Timer(0.002 + turn % 10 / 1000, signal.pthread_kill, (main, signal.SIGINT))
    try:
        sender.start()
        end = time.monotonic() + 30  # a busy machine starts threads late
        while time.monotonic() < end:
            csv.read_csv(io.BytesIO(table))
    except KeyboardInterrupt:
        raised += 1
print(raised, flush=True)
os._exit(0)  # as the command line ends: a thread of pyarrow may abort a process that finalizes Python
""")
    assert printed.split() == ["100"]
