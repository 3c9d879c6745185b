"""Counts accepts: which ones are valid, whether the quorum is complete, and how far to remember the decision. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from signoff.approvals.approvers import may_decide
from signoff.approvals.model import Actor, ApprovalRequest, Batch, Remember, Vote
from signoff.dataclass import dataclass


class Unchecked(Exception):
    """These people, who voted or gave a grant, must be looked up again first."""

    def __init__(self, people: frozenset[str]) -> None:
        super().__init__("people to check")
        self.people = people


@dataclass(frozen=True, slots=True)
class Count:
    votes: tuple[Vote, ...]
    """Votes that count, the newest last."""
    void: tuple[Vote, ...] = ()
    """Votes of people who may no longer decide."""
    complete: bool = False

    @property
    def remember(self) -> Remember:
        """The narrowest scope that any voter chose."""
        return min((vote.remember for vote in self.votes), key=lambda scope: scope.reach, default=Remember.NONE)


def count(vote: Vote, request: ApprovalRequest, batch: Batch, seen: Mapping[str, Actor | None]) -> Count:
    """Count one more vote. `seen`: voter id -> that person as they are now, None if they left.

    Raises Unchecked if this vote would complete the quorum and an earlier voter is not in `seen`.
    """
    earlier = tuple(v for v in request.votes if v.by.id != vote.by.id)
    if len(earlier) + 1 < request.quorum:
        return Count((*earlier, vote))
    # A request that needs one accept has no earlier votes, so nobody is looked up for it.
    if unknown := frozenset(v.by.id for v in earlier) - set(seen):
        raise Unchecked(unknown)
    standing: list[Vote] = []
    void: list[Vote] = []
    for v in earlier:
        voter = seen[v.by.id]
        if voter and may_decide(voter, request, batch, accepts=True):
            standing.append(_again(v, voter, batch))
        else:
            void.append(v)
    return Count((*standing, vote), tuple(void), complete=len(standing) + 1 >= request.quorum)


def may_remember(actor: Actor, batch: Batch) -> bool:
    """Whether this person may choose "always": it outlives the conversation, so it needs Manage Server."""
    return actor.manages_server or batch.place.is_direct


def _again(vote: Vote, voter: Actor, batch: Batch) -> Vote:
    """Return the vote with the person's present rights: "always" becomes "session" if they may no longer choose it."""
    if vote.remember is Remember.ALWAYS and not may_remember(voter, batch):
        return replace(vote, remember=Remember.SESSION)
    return vote
