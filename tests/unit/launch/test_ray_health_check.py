"""`ray health-check` of the trainer image: it waits until the head accepts connections."""

import socket
import subprocess
from pathlib import Path

from cluster.component import ENDS_WITH_US
from trainjob.launch import fast

SCRIPT = Path(fast.__file__).with_name("ray_health_check.sh")


def test_it_waits_until_the_head_accepts_connections():
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        command = ["bash", str(SCRIPT), "health-check", "--address", f"localhost:{head.getsockname()[1]}"]
        with subprocess.Popen([*ENDS_WITH_US, *command]) as check:
            try:
                check.wait(timeout=1)
            except subprocess.TimeoutExpired:
                head.listen()
            assert check.wait(timeout=60) == 0
            connection, _ = head.accept()
            connection.close()


def test_a_host_that_is_not_there_is_named():
    script = SCRIPT.read_text().replace("{1..100}", "{1..2}")
    command = ["bash", "-c", script, "ray", "health-check", "--address", "head.invalid:6379"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr == "The head does not accept connections at head.invalid:6379.\n"
