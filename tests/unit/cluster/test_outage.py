"""Errors of an API server that pass."""

import pytest

from trainjob.cluster import outage
from trainjob.cluster.errors import ClusterUnreachable, NotPermitted
from trainjob.errors import Notice


def test_an_outage_is_told_once_and_refusals_pass_only_while_an_api_server_starts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outage, "PAUSE_SECONDS", 0)
    borne = outage.Outage()
    with pytest.warns(Notice, match=r"^\d\d:\d\d:\d\dZ: it does not answer; trying again$"):
        borne.bear(ClusterUnreachable("it does not answer"))
    borne.bear(ClusterUnreachable("it does not answer"))  # a second notice would be an error here
    borne.bear(NotPermitted("you may not list"))
    monkeypatch.setattr(outage, "REFUSAL_SECONDS", -1)
    with pytest.raises(NotPermitted, match="you may not list"):
        borne.bear(NotPermitted("you may not list"))
    borne.end()
    with pytest.warns(Notice, match="it is away again"):
        borne.bear(ClusterUnreachable("it is away again"))
