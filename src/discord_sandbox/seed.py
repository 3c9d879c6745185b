"""The world that a new sandbox starts with: two servers, a few people, the bot, another bot and a webhook.

Tests and the guide use the names and roles. The ids are new each time, except the default bot's.
"""

import secrets
from dataclasses import dataclass

from discord_sandbox.clock import Clock
from discord_sandbox.model import Application, Channel, ChannelType, Guild, Member, Role, User, Webhook
from discord_sandbox.permissions import BOT_INVITE, EVERYONE, Permission
from discord_sandbox.snowflake import Snowflakes
from discord_sandbox.tokens import DEFAULT_BOT_ID, bot_id_in, token_for
from discord_sandbox.world import World


@dataclass(frozen=True)
class Plan:
    """The choices for a new world.

    `token` is the bot's token. It can be any text; if it has Discord's shape, the bot gets the id in it.
    `message_content` and `members` grant the privileged intents. `bot` and `server` are the names of the bot and of its
    server.
    """

    token: str = token_for(DEFAULT_BOT_ID)
    message_content: bool = False
    members: bool = False
    bot: str = "Bot"
    server: str = "Lab"


def new_world(plan: Plan | None = None) -> World:
    plan = plan or Plan()
    clock = Clock()
    world = World(clock, Snowflakes(clock.now))
    ada, max_, olga, nina, otto = (new_person(world, name) for name in ("Ada", "Max", "Olga", "Nina", "Otto"))
    bot = _bot(world, plan.bot, ada, bot_id_in(plan.token) or world.ids.next(), plan.token)
    world.applications[bot.id].message_content = plan.message_content
    world.applications[bot.id].members = plan.members
    echo_id = world.ids.next()
    echo = _bot(world, "Echo", ada, echo_id, token_for(echo_id))

    lab = new_guild(world, plan.server, ada)
    admins = new_role(world, lab, "Admins", EVERYONE | Permission.MANAGE_GUILD | Permission.MANAGE_ROLES)
    approvers = new_role(world, lab, "Approvers", 0)
    join(world, lab, ada, admins)
    join(world, lab, max_)
    join(world, lab, olga, approvers)
    join(world, lab, nina, approvers)
    join_bot(world, lab, bot, BOT_INVITE)
    join_bot(world, lab, echo, BOT_INVITE)
    general = new_channel(world, lab, "general")
    new_channel(world, lab, "ops")
    hook = Webhook(world.ids.next(), general.id, lab.id, "Deploys", secrets.token_urlsafe(24))
    world.webhooks[hook.id] = hook

    other = new_guild(world, "Other Place", otto)
    new_channel(world, other, "lobby")
    return world


def new_person(world: World, name: str, number: int | None = None) -> User:
    user = User(number or world.ids.next(), name)
    world.users[user.id] = user
    return user


def _bot(world: World, name: str, owner: User, bot_id: int, token: str) -> User:
    user = User(bot_id, name, bot=True)
    world.users[user.id] = user
    world.applications[user.id] = Application(user.id, name, owner.id, [token])
    return user


def new_guild(world: World, name: str, owner: User) -> Guild:
    guild = Guild(world.ids.next(), name, owner.id)
    guild.roles[guild.id] = Role(guild.id, "@everyone", EVERYONE, position=0)
    world.guilds[guild.id] = guild
    join(world, guild, owner)
    return guild


def new_role(world: World, guild: Guild, name: str, permissions: int, number: int | None = None) -> Role:
    role = Role(number or world.ids.next(), name, int(permissions), position=len(guild.roles))
    guild.roles[role.id] = role
    return role


def new_channel(world: World, guild: Guild, name: str, number: int | None = None) -> Channel:
    position = len(world.channels_of(guild.id))
    channel = Channel(number or world.ids.next(), ChannelType.TEXT, name, guild.id, position=position)
    world.channels[channel.id] = channel
    return channel


def join(world: World, guild: Guild, user: User, *roles: Role) -> Member:
    member = guild.members.get(user.id) or Member(user.id, world.clock.iso())
    member.roles.extend(role.id for role in roles)
    guild.members[user.id] = member
    return member


def join_bot(world: World, guild: Guild, bot: User, permissions: int) -> Member:
    """Add a bot to a server with its own role, which has the permissions of the invitation."""
    role = new_role(world, guild, bot.name, permissions)
    role.bot_id = bot.id
    return join(world, guild, bot, role)
