"""Counting accepts: whose count, whether there are enough, and how far the decision may be remembered. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from signoff.approvals.approvers import may_decide
from signoff.approvals.model import Actor, ApprovalRequest, Batch, Remember, Vote


class Unchecked(Exception):
    """The quorum would be complete, but these voters have not been looked at again."""

    def __init__(self, voters: frozenset[str]) -> None:
        super().__init__("votes to check")
        self.voters = voters


@dataclass(frozen=True, slots=True)
class Count:
    votes: tuple[Vote, ...]
    """Those that count, the newest last."""
    void: tuple[Vote, ...] = ()
    """Those of people who may no longer decide."""
    complete: bool = False

    @property
    def remember(self) -> Remember:
        """No farther than every voter said."""
        return min((vote.remember for vote in self.votes), key=lambda scope: scope.reach, default=Remember.NONE)


def count(vote: Vote, request: ApprovalRequest, batch: Batch, seen: Mapping[str, Actor | None]) -> Count:
    """The votes after one more. `seen` holds the earlier voters as they are now; None is somebody who is gone.

    Raises Unchecked where this vote would complete the quorum and an earlier voter is not among `seen`.
    """
    earlier = tuple(v for v in request.votes if v.by.id != vote.by.id)
    if len(earlier) + 1 < request.quorum:
        return Count((*earlier, vote))
    # A request for one person has no earlier votes, so nobody is looked up for it.
    if unknown := frozenset(v.by.id for v in earlier) - set(seen):
        raise Unchecked(unknown)
    standing: list[Vote] = []
    void: list[Vote] = []
    for v in earlier:
        voter = seen[v.by.id]
        if voter and may_decide(voter, request, batch):
            standing.append(_again(v, voter, batch))
        else:
            void.append(v)
    return Count((*standing, vote), tuple(void), complete=len(standing) + 1 >= request.quorum)


def may_remember(actor: Actor, batch: Batch) -> bool:
    """Who may say "always": it outlives the conversation, so it takes the server's management."""
    return actor.manages_server or batch.place.is_direct


def _again(vote: Vote, voter: Actor, batch: Batch) -> Vote:
    """The same vote by the person as they are now; "always" falls back where they may no longer say it."""
    if vote.remember is Remember.ALWAYS and not may_remember(voter, batch):
        return replace(vote, remember=Remember.SESSION)
    return vote
