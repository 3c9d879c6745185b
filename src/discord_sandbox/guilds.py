"""Servers, applications, commands and webhooks as Discord sends them.

Like `payloads`, this module reads the world, changes nothing and decides nothing.
"""

from discord_sandbox.model import Application, Command, Guild, Json, User, Webhook
from discord_sandbox.payloads import Payloads
from discord_sandbox.permissions import BOT_INVITE, Permission, can, in_guild

MEMBERS_INTENT = 1 << 1


def guild(payloads: Payloads, guild: Guild) -> Json:
    """A server in a REST response."""
    return {
        "id": str(guild.id),
        "name": guild.name,
        "icon": None,
        "description": None,
        "home_header": None,
        "splash": None,
        "discovery_splash": None,
        "features": [],
        "banner": None,
        "owner_id": str(guild.owner_id),
        "application_id": None,
        "region": "deprecated",
        "afk_channel_id": None,
        "afk_timeout": 300,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "widget_enabled": False,
        "widget_channel_id": None,
        "verification_level": 1,
        "roles": [payloads.role(role) for role in guild.roles.values()],
        "default_message_notifications": 1,
        "mfa_level": 0,
        "explicit_content_filter": 0,
        "max_presences": None,
        "max_members": 500000,
        "max_stage_video_channel_users": 50,
        "max_video_channel_users": 25,
        "vanity_url_code": None,
        "premium_tier": 0,
        "premium_subscription_count": 0,
        "preferred_locale": "en-US",
        "rules_channel_id": None,
        "safety_alerts_channel_id": None,
        "public_updates_channel_id": None,
        "premium_progress_bar_enabled": False,
        "nsfw": False,
        "nsfw_level": 0,
        "emojis": [],
        "stickers": [],
        "incidents_data": None,
    }


def guild_create(payloads: Payloads, place: Guild, viewer: int, intents: int) -> Json:
    """A server in a gateway event: only what this bot may see, and other members only with their intent."""
    world = payloads.world
    sees = [c for c in world.channels_of(place.id) if can(world, c, viewer, Permission.VIEW_CHANNEL)]
    threads = [t for t in world.threads_of(place.id, archived=False) if can(world, t, viewer, Permission.VIEW_CHANNEL)]
    members = list(place.members.values()) if intents & MEMBERS_INTENT else [place.members[viewer]]
    return guild(payloads, place) | {
        "joined_at": place.members[viewer].joined_at,
        "large": False,
        "unavailable": False,
        "member_count": len(place.members),
        "members": [payloads.member(member) for member in members],
        "channels": [payloads.channel(channel, viewer) for channel in sees],
        "threads": [payloads.channel(thread, viewer) for thread in threads],
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
    }


def user_guild(place: Guild, viewer: int) -> Json:
    """One entry in a bot's list of its servers."""
    return {
        "id": str(place.id),
        "name": place.name,
        "icon": None,
        "banner": None,
        "owner": place.owner_id == viewer,
        "permissions": str(in_guild(place, viewer)),
        "features": [],
    }


def counts(place: Guild) -> Json:
    """Return the numbers that `with_counts` asks for. Everybody in the sandbox is online."""
    return {"approximate_member_count": len(place.members), "approximate_presence_count": len(place.members)}


def application(payloads: Payloads, app: Application) -> Json:
    world = payloads.world
    bot = world.users[app.id]
    return {
        "id": str(app.id),
        "name": app.name,
        "icon": None,
        "description": "A bot in the sandbox",
        "type": None,
        "bot": payloads.user(bot),
        "bot_public": True,
        "bot_require_code_grant": False,
        "integration_types_config": {"0": {"oauth2_install_params": _install()}},
        "install_params": _install(),
        "verify_key": "0" * 64,
        "flags": application_flags(app),
        "flags_new": str(application_flags(app)),
        "redirect_uris": [],
        "interactions_endpoint_url": None,
        "role_connections_verification_url": None,
        "owner": payloads.user(world.users.get(app.owner_id) or User(app.owner_id, "Owner")),
        "approximate_guild_count": len(world.guilds_of(app.id)),
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": 0,
        "explicit_content_filter": 0,
        "team": None,
        "eligible_oauth2_scopes": [],
        "rpc_origins": [],
        "tags": [],
        "event_webhooks_status": 1,
        "hook": True,
        "summary": "",
    }


def _install() -> Json:
    return {"scopes": ["applications.commands", "bot"], "permissions": str(BOT_INVITE)}


def application_flags(app: Application) -> int:
    """Return the LIMITED flags, as for a bot in fewer than a hundred servers."""
    return (app.presences << 13) | (app.members << 15) | (app.message_content << 19)


def command(command: Command) -> Json:
    body: Json = {
        "id": str(command.id),
        "application_id": str(command.application_id),
        "version": str(command.version),
        "default_member_permissions": command.body.get("default_member_permissions"),
        "type": command.body.get("type", 1),
        "name": command.body["name"],
        "name_localizations": command.body.get("name_localizations"),
        "description": command.body.get("description", ""),
        "description_localizations": command.body.get("description_localizations"),
        "dm_permission": command.body.get("dm_permission", True),
        "contexts": command.body.get("contexts"),
        "integration_types": command.body.get("integration_types") or [0],
        "nsfw": bool(command.body.get("nsfw")),
    }
    if command.body.get("options"):
        body["options"] = command.body["options"]
    return body if command.guild_id is None else body | {"guild_id": str(command.guild_id)}


def webhook(hook: Webhook, base: str) -> Json:
    return {
        "id": str(hook.id),
        "type": 1,
        "name": hook.name,
        "avatar": None,
        "channel_id": str(hook.channel_id),
        "guild_id": str(hook.guild_id),
        "application_id": None,
        "token": hook.token,
        "url": f"{base}/webhooks/{hook.id}/{hook.token}",
    }
