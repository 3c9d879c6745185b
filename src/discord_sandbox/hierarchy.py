"""The order of roles: whom somebody may kick, ban, time out or rename, and which roles they may give.

Discord refuses all of these with the error for a missing permission. Bots and people go through the same checks.
"""

from discord_sandbox import apierrors
from discord_sandbox.model import Guild, Role
from discord_sandbox.permissions import Permission, in_guild


def rank(guild: Guild, user_id: int) -> tuple[int, int]:
    """Return the place of somebody's highest role. Of two roles at one position, the older one is higher."""
    member = guild.members.get(user_id)
    roles = [guild.roles[number] for number in member.roles if number in guild.roles] if member else []
    return max((place_of(role) for role in roles), default=(0, 0))


def place_of(role: Role) -> tuple[int, int]:
    return role.position, -role.id


def require_above(guild: Guild, actor: int, target: int) -> None:
    """Raise unless the actor is above the target. Nobody is above the owner, and the owner is above everybody else."""
    if target == guild.owner_id or (actor != guild.owner_id and rank(guild, actor) <= rank(guild, target)):
        raise apierrors.missing_permissions()


def require_role_below(guild: Guild, actor: int, role: Role) -> None:
    """Raise unless the actor may give and take this role. Nobody may give @everyone or the role of a bot."""
    if role.id == guild.id or role.bot_id is not None:
        raise apierrors.missing_permissions()
    if actor != guild.owner_id and rank(guild, actor) <= place_of(role):
        raise apierrors.missing_permissions()


def require_not_admin(guild: Guild, target: int) -> None:
    """Raise if the target is an administrator: they cannot be timed out."""
    if in_guild(guild, target) & Permission.ADMINISTRATOR:
        raise apierrors.missing_permissions()
