// The state of the page, and the listeners for its changes. No elements and no requests.

export const app = {
  me: null, // the person who looks
  here: null, // the open channel
  world: null, // places, people and the bot, as the server last sent them
  messages: new Map(), // of the open channel, by id
  unread: new Map(), // channel id -> ids of the unread messages that mention the person
  answers: [], // texts that the guide suggests for the bot's forms, for the present step
  skew: 0, // the server's clock minus this one, in milliseconds
};

const listeners = new Map();

export function on(name, listener) {
  if (!listeners.has(name)) listeners.set(name, []);
  listeners.get(name).push(listener);
}

export function emit(name, ...values) {
  for (const listener of listeners.get(name) || []) listener(...values);
}

export const now = () => Date.now() + app.skew;

export function person(id) {
  const found = app.world.users[id];
  return found ? found : { name: "unknown", bot: false };
}

export const self = () => app.world.people.find((one) => one.id === app.me);

/** The channel or thread with its server and, for a thread, its parent. */
export function place(id) {
  for (const guild of app.world.guilds) {
    for (const channel of guild.channels) {
      if (channel.id === id) return { ...channel, guild, kind: "channel" };
      const thread = channel.threads.find((one) => one.id === id);
      if (thread) return { ...thread, guild, channel, kind: "thread" };
    }
  }
  const direct = app.world.direct.find((one) => one.id === id);
  return direct ? { id, name: person(direct.with).name, kind: "direct", with: direct.with, writable: true } : null;
}

/** Notes a direct conversation with the bot that is not in the list of places yet. */
export function knowDirect(id) {
  if (!app.world.direct.some((one) => one.id === id)) app.world.direct.push({ id, with: app.world.bot.id });
}

export function firstPlace() {
  for (const guild of app.world.guilds) if (guild.channels.length) return guild.channels[0].id;
  return app.world.direct.length ? app.world.direct[0].id : null;
}

/** Snowflakes outgrow numbers; equal lengths compare as text. */
export function older(a, b) {
  return a.length === b.length ? a < b : a.length < b.length;
}
