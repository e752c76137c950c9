"""A change that waits for a connection is not sent once the lease is lost."""

import asyncio

import pytest
from aiohttp import ClientError, ClientSession, TCPConnector, web

from trainjob_operator.api import writes_only_while


def test_a_change_that_waits_for_a_connection_is_not_sent_by_who_leads_no_more() -> None:
    asyncio.run(lose_the_lease_meanwhile())


async def lose_the_lease_meanwhile() -> None:
    came: list[tuple[str, bytes]] = []
    comes, goes_on, leads = asyncio.Event(), asyncio.Event(), True

    async def answer(request: web.Request) -> web.Response:
        came.append((request.method, await request.read()))
        comes.set()
        await goes_on.wait()
        return web.Response()

    application = web.Application()
    application.router.add_route("*", "/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    connection = TCPConnector(limit=1)
    async with ClientSession(connector=connection, middlewares=[writes_only_while(lambda: leads)]) as session:
        first = asyncio.create_task(session.put(url, data='{"first": 1}'))
        await comes.wait()
        changes = ("PATCH", "x"), ("POST", b"x"), ("DELETE", None)
        others = [asyncio.create_task(session.request(method, url, data=data)) for method, data in changes]
        read = asyncio.create_task(session.get(url))
        await asyncio.sleep(0.1)  # now they wait for the connection
        leads = False
        goes_on.set()
        assert (await first).status == (await read).status == 200
        for other in others:
            with pytest.raises(ClientError, match="is no longer the leader"):
                await other
    await runner.cleanup()
    assert came == [("PUT", b'{"first": 1}'), ("GET", b"")]
