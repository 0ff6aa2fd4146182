import type { Action, WarningMeta } from "../domain/action.ts";
import type { ActionsPort, Answer } from "../evreg.ts";
import { jsonAnswer } from "./answers.ts";
import { requestBody } from "./channel.ts";
import type { Channel } from "./channel.ts";

export function actionsOver(channel: Channel): ActionsPort {
  return {
    async list(query = {}) {
      return jsonAnswer(await channel.send("GET", "/v1/actions", { query: { ...query } })) as Answer<
        readonly Action[]
      >;
    },
    async create(input) {
      const sent = { body: requestBody(input) };
      return jsonAnswer(await channel.send("POST", "/v1/actions", sent)) as Answer<Action, WarningMeta>;
    },
    async get(name) {
      return jsonAnswer(await channel.send("GET", pathOf(name))) as Answer<Action>;
    },
    async update(name, input, options = {}) {
      const sent = { body: requestBody(input), query: { ...options } };
      return jsonAnswer(await channel.send("PUT", pathOf(name), sent)) as Answer<Action, WarningMeta>;
    },
  };
}

function pathOf(name: string): string {
  return `/v1/actions/${encodeURIComponent(name)}`;
}
