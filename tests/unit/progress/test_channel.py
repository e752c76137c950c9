"""Snapshots reach the driver, strangers do not, and a lost driver disturbs nobody."""

import queue
import socket
import struct
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing.connection import Client

import pytest

from tcp_proxy import Proxy
from trainjob.api.training_status import TrainingStatus
from trainjob.progress import channel
from trainjob.progress.channel import MAX_QUEUED, MAX_UNAUTHENTICATED, Address, ProgressReceiver, Sender


def test_snapshots_arrive_in_order_and_the_last_one_always():
    received: queue.Queue[TrainingStatus] = queue.Queue()
    with ProgressReceiver(received.put) as receiver:
        sender = Sender(receiver.address)
        for step in range(50):
            sender.send(TrainingStatus(step=step, loss=0.5))
        sender.send(TrainingStatus(step=50, metrics={"validation_loss": 0.1}), always=True)
        sender.close()
        steps = [received.get(timeout=10)]
        while steps[-1].step != 50:
            steps.append(received.get(timeout=10))
    assert [status.step for status in steps] == sorted(status.step for status in steps)
    assert len(steps) < 50
    assert steps[-1].metrics == {"validation_loss": 0.1}


def test_who_has_not_the_key_is_refused_and_the_line_stays_open():
    received: queue.Queue[TrainingStatus] = queue.Queue()
    with ProgressReceiver(received.put) as receiver:
        wrong = replace(receiver.address, key=b"wrong")
        with pytest.raises(Exception, match="digest"):
            Client((wrong.host, wrong.port), authkey=wrong.key)
        sender = Sender(receiver.address)
        sender.send(TrainingStatus(step=1), always=True)
        sender.close()
        assert received.get(timeout=10).step == 1


def test_who_connects_and_says_nothing_holds_up_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channel, "HANDSHAKE_SECONDS", 0.5)
    received: queue.Queue[TrainingStatus] = queue.Queue()
    with ProgressReceiver(received.put) as receiver, ExitStack() as strangers:
        address = receiver.address.host, receiver.address.port
        silent = [strangers.enter_context(socket.create_connection(address)) for _ in range(2 * MAX_UNAUTHENTICATED)]
        silent[0].sendall(b"\x00")
        sender = Sender(receiver.address)
        sender.send(TrainingStatus(step=1), always=True)
        assert received.get(timeout=30).step == 1
        for each in silent:
            each.settimeout(30)
            while each.recv(1000):  # the challenge, and then the end
                pass
        time.sleep(0.5)  # who has shown the key may be silent for long
        sender.send(TrainingStatus(step=2), always=True)
        sender.close()
        assert received.get(timeout=30).step == 2


def test_who_says_one_byte_after_the_other_holds_up_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channel, "HANDSHAKE_SECONDS", 0.5)
    received: queue.Queue[TrainingStatus] = queue.Queue()
    with ProgressReceiver(received.put) as receiver, ExitStack() as strangers:
        address = receiver.address.host, receiver.address.port
        slow = [strangers.enter_context(socket.create_connection(address)) for _ in range(MAX_UNAUTHENTICATED)]
        sender = Sender(receiver.address)
        sender.send(TrainingStatus(step=1), always=True)
        for byte in struct.pack("!i", 256) + bytes(250):
            for each in slow:
                with suppress(OSError):  # the driver has ended it
                    each.sendall(bytes([byte]))
            with suppress(queue.Empty):
                assert received.get(timeout=0.1).step == 1
                break
        else:
            pytest.fail("all places are held")
        sender.close()


def test_a_line_that_was_lost_is_opened_again():
    received: queue.Queue[TrainingStatus] = queue.Queue()
    with ProgressReceiver(received.put) as receiver:
        network = Proxy(receiver.address.port)
        sender = Sender(replace(receiver.address, port=network.port))
        sender.send(TrainingStatus(step=1), always=True)
        assert received.get(timeout=30).step == 1
        network.break_off()
        for step in (2, 3):
            sender.send(TrainingStatus(step=step), always=True)
        network.recover()
        assert [received.get(timeout=30).step for _ in range(2)] == [2, 3]
        network.break_off()
        network.recover()
        sender.send(TrainingStatus(step=4), always=True)
        sender.close()
        assert received.get(timeout=30).step == 4
        network.close()


def test_for_a_driver_that_takes_nothing_only_the_latest_is_kept():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sender = Sender(Address("127.0.0.1", silent.getsockname()[1], b"key"))
        for number in range(3 * MAX_QUEUED):
            sender.send_output(f"line {number}")
        waiting = list(sender._queue)  # noqa: SLF001
        assert waiting == [b"oline %d" % number for number in range(2 * MAX_QUEUED, 3 * MAX_QUEUED)]


def test_what_is_printed_arrives_before_the_line_is_closed():
    lines: list[str] = []
    with ProgressReceiver(lambda status: None, show=lines.append) as receiver:
        sender = Sender(receiver.address)
        for number in range(1000):
            sender.send_output(f"line {number} \ud83d\nand more".encode("utf-8", "replace").decode())
        sender.close()
    assert len(lines) == 2000
    assert lines[-2:] == ["line 999 ?", "and more"]


def test_training_goes_on_without_a_driver():
    with ProgressReceiver(lambda status: None) as receiver:
        address = receiver.address
    sender = Sender(address)
    sender.send(TrainingStatus(step=1), always=True)
    sender.close()
