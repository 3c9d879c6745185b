"""The parts of one running sandbox, joined once and passed around.

This class has no behaviour; `posting`, `threads`, `callbacks` and others do.
"""

from dataclasses import dataclass, field

from discord_sandbox.clock import Clock
from discord_sandbox.eventlog import EventLog
from discord_sandbox.faults import Faults
from discord_sandbox.gateway import Gateway
from discord_sandbox.interactions import InteractionBook
from discord_sandbox.payloads import ATTACHMENT_LIMIT, Payloads
from discord_sandbox.ratelimits import RateLimits
from discord_sandbox.sessions import Sessions
from discord_sandbox.world import World


@dataclass
class Sandbox:
    clock: Clock
    world: World
    log: EventLog
    payloads: Payloads
    sessions: Sessions
    gateway: Gateway
    interactions: InteractionBook
    limits: RateLimits
    faults: Faults = field(default_factory=Faults)
    attachment_limit: int = ATTACHMENT_LIMIT
    nonce_seconds: float = 300.0
    """How long a nonce is remembered."""
    api_url: str = ""

    @classmethod
    def around(cls, world: World) -> "Sandbox":
        clock = world.clock
        log = EventLog(clock)
        payloads = Payloads(world)
        sessions = Sessions(clock, log)
        return cls(
            clock=clock,
            world=world,
            log=log,
            payloads=payloads,
            sessions=sessions,
            gateway=Gateway(payloads, sessions, log),
            interactions=InteractionBook(),
            limits=RateLimits(clock),
        )
