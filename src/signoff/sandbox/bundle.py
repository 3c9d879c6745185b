"""The parts of one running sandbox, tied together once and handed around.

It only holds them: what they do with each other is written in `posting`, `threads`, `callbacks` and their like.
"""

from dataclasses import dataclass, field

from signoff.sandbox.clock import Clock
from signoff.sandbox.eventlog import EventLog
from signoff.sandbox.faults import Faults
from signoff.sandbox.gateway import Gateway
from signoff.sandbox.interactions import InteractionBook
from signoff.sandbox.payloads import ATTACHMENT_LIMIT, Payloads
from signoff.sandbox.ratelimits import RateLimits
from signoff.sandbox.sessions import Sessions
from signoff.sandbox.world import World


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
