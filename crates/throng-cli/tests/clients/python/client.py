"""The Python client `phoenix-channels-python-client` against `throng serve channels`.

Called with the address of the server's socket and a version, `1.0` or `2.0`; it prints what it checked and fails at the
first thing that is not as it should be.

The client takes a message without a join_ref for a stale one, in version 2 only. Broadcasts and the refusal of unknown topics have none
there, so both are checked in version 1.
"""

import asyncio
import contextlib
import sys

from phoenix_channels_python_client import (
    PhoenixChannelsProtocolVersion,
    PHXChannelsClient,
    ReconnectPolicy,
)
from phoenix_channels_python_client.exceptions import PHXTopicError
from phoenix_channels_python_client.utils import make_message

PATIENCE_S = 40


class Tap:
    """Keeps the messages of a topic's handler, and waits for more."""

    def __init__(self):
        self.messages = []
        self.more = asyncio.Condition()

    async def __call__(self, message):
        async with self.more:
            self.messages.append(message)
            self.more.notify_all()

    async def event(self, event, **fields):
        def fits(message):
            return str(message.event) == event and all(getattr(message, name) == value for name, value in fields.items())

        async with self.more:
            await within(self.more.wait_for(lambda: any(map(fits, self.messages))), f"{event} {fields}")
            return next(filter(fits, self.messages))


class User:
    """One client, which chooses its own refs."""

    def __init__(self, url, version, **options):
        self.pushes = 0
        self.lost = asyncio.Queue()
        self.back = asyncio.Event()
        self.beats = asyncio.Semaphore(0)
        self.client = PHXChannelsClient(
            url,
            "no key",
            protocol_version=version,
            reconnect_policy=ReconnectPolicy(base_delay_s=0.05, rapid_first_min_delay_s=0.0),
            join_timeout_s=PATIENCE_S,
            leave_timeout_s=PATIENCE_S,
            on_topic_lost=self.on_topic_lost,
            on_reconnect=self.on_reconnect,
            on_heartbeat_ack=self.beats.release,
            **options,
        )

    async def on_topic_lost(self, topic, _error):
        await self.lost.put(topic)

    async def on_reconnect(self):
        self.back.set()

    async def join(self, topic):
        tap = Tap()
        await within(self.client.subscribe_to_topic(topic, tap), f"joined {topic}")
        return tap

    async def push(self, topic, event, payload):
        """Sends `payload` and returns the ref."""
        self.pushes += 1
        ref = f"push-{self.pushes}"
        join_ref = self.client.get_current_subscriptions()[topic].join_ref
        message = make_message(event=event, topic=topic, ref=ref, payload=payload, join_ref=join_ref)
        await self.client.get_protocol_handler().send_message(self.client.connection, message)
        return ref

    async def reply(self, tap, topic, event, payload):
        return (await tap.event("phx_reply", ref=await self.push(topic, event, payload))).payload


async def replies(ada, _bob):
    tap = await ada.join("rooms:python")
    payload = {"text": "grüße \u2028 😀", "list": [1, None, {}]}
    assert await ada.reply(tap, "rooms:python", "echo", payload) == {"status": "ok", "response": payload}
    assert await ada.reply(tap, "rooms:python", "error", {}) == {"status": "error", "response": {"reason": "asked"}}
    await ada.push("rooms:python", "push_me", {"to": "me"})
    assert (await tap.event("pushed")).payload == {"to": "me"}


async def leaving(ada, _bob):
    await ada.join("rooms:left")
    await within(ada.client.unsubscribe_from_topic("rooms:left"), "left")
    assert "rooms:left" not in ada.client.get_current_subscriptions()
    await ada.join("rooms:left")


async def refusal(ada, _bob):
    await refused(ada, "private:python", "unauthorized")


async def unknown_topic(ada, _bob):
    await refused(ada, "nowhere:python", "unmatched topic")


async def broadcasts(ada, bob):
    taps = [await user.join("rooms:talk") for user in (ada, bob)]
    for event in ("new_msg", "new:msg"):
        assert await ada.reply(taps[0], "rooms:talk", event, {"body": event}) == {"status": "ok", "response": {}}
        for tap in taps:
            assert (await tap.event(event)).payload == {"body": event}


async def crash(ada, _bob):
    tap = await ada.join("rooms:crash")
    before = ada.client.get_current_subscriptions()["rooms:crash"].join_ref

    def back():
        topic = ada.client.get_current_subscriptions()["rooms:crash"]
        return topic.join_ref != before and ada.client.is_topic_joined("rooms:crash")

    await ada.push("rooms:crash", "crash", {})
    await eventually("it joined again", back)
    assert (await ada.reply(tap, "rooms:crash", "echo", {"again": 1}))["response"] == {"again": 1}


async def stop(ada, _bob):
    await ada.join("rooms:stop")
    await ada.push("rooms:stop", "stop", {})
    assert await within(ada.lost.get(), "the topic is lost") == "rooms:stop"


async def heartbeats(ada, _bob):
    for _ in range(3):
        await within(ada.beats.acquire(), "a heartbeat is answered")


async def reconnect(ada, _bob):
    tap = await ada.join("rooms:reconnect")
    await ada.client.close_connection("on purpose")
    await within(ada.back.wait(), "it is back")
    await eventually("it joined again", lambda: ada.client.is_topic_joined("rooms:reconnect"))
    assert (await ada.reply(tap, "rooms:reconnect", "echo", {"b": 2}))["response"] == {"b": 2}


EITHER = [replies, leaving, refusal, crash, stop, heartbeats, reconnect]
CHECKS = {"1.0": [*EITHER, broadcasts, unknown_topic], "2.0": EITHER}


async def main(url, version):
    protocol = PhoenixChannelsProtocolVersion(version)
    for check in CHECKS[version]:
        async with contextlib.AsyncExitStack() as stack:
            users = [User(url, protocol, heartbeat_interval_s=0.5) for _ in range(2)]
            for user in users:
                await within(stack.enter_async_context(user.client), "connected")
            await check(*users)
        print(f"version {version}: {check.__name__}", flush=True)


async def refused(user, topic, reason):
    try:
        await user.join(topic)
    except PHXTopicError as error:
        assert str(error) == reason, error
    else:
        raise AssertionError(f"{topic} was joined")


async def within(awaitable, what):
    try:
        return await asyncio.wait_for(awaitable, PATIENCE_S)
    except TimeoutError:
        raise AssertionError(f"never: {what}") from None


async def eventually(what, holds):
    async def poll():
        while not holds():
            await asyncio.sleep(0.02)

    await within(poll(), what)


asyncio.run(main(*sys.argv[1:]))
