// The compatibility bot in discord.js 14. See run.py for what it has to do.

import { Client, Events, GatewayIntentBits } from "discord.js";

const client = new Client({
  intents: [GatewayIntentBits.Guilds, GatewayIntentBits.GuildMessages],
  rest: { api: process.env.DISCORD_API_URL.replace(/\/v10$/, "") },
});

client.once(Events.ClientReady, async () => {
  await client.application.commands.set([
    {
      name: "echo",
      description: "Says it again",
      options: [{ type: 3, name: "text", description: "What to say", required: true, max_length: 100 }],
    },
  ]);
});

client.on(Events.MessageCreate, async (message) => {
  if (message.author.bot || !message.mentions.has(client.user)) return;
  const button = (label, custom_id) => ({ type: 2, style: 1, label, custom_id });
  const components = [{ type: 1, components: [button("Press me", "press"), button("Open a form", "form")] }];
  await message.reply({ content: "What next?", components });
});

client.on(Events.InteractionCreate, async (interaction) => {
  if (interaction.isButton() && interaction.customId === "press") {
    await interaction.update({ content: `Pressed by ${interaction.user.id}`, components: [] });
  } else if (interaction.isButton()) {
    const input = { type: 4, custom_id: "reason", label: "Why?", style: 1 };
    await interaction.showModal({ custom_id: "why", title: "Reason", components: [{ type: 1, components: [input] }] });
  } else if (interaction.isModalSubmit()) {
    await interaction.reply({ content: `Because ${interaction.fields.getTextInputValue("reason")}`, flags: 64 });
  } else if (interaction.isChatInputCommand()) {
    await interaction.reply(`Echo ${interaction.options.getString("text")}`);
  }
});

await client.login(process.env.DISCORD_TOKEN);
