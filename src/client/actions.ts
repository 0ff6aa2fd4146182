import type { Action, ActionRevision, SchemaVerdict, WarningMeta } from "../domain/action.ts";
import type { ActionsPort, Answer } from "../evreg.ts";
import { jsonAnswer, listAnswer } from "./answers.ts";
import { requestBody } from "./channel.ts";
import type { Channel } from "./channel.ts";

export function actionsOver(channel: Channel): ActionsPort {
  return {
    async list(query = {}) {
      const received = await channel.send("GET", "/v1/actions", { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly Action[]>;
    },
    async create(input, signal) {
      const sent = { body: requestBody(input), signal };
      return jsonAnswer(await channel.send("POST", "/v1/actions", sent), "action") as Answer<
        Action,
        WarningMeta
      >;
    },
    async get(name) {
      return jsonAnswer(await channel.send("GET", pathOf(name)), "action") as Answer<Action>;
    },
    async update(name, input, options = {}, signal) {
      const sent = { body: requestBody(input), query: { ...options }, signal };
      return jsonAnswer(await channel.send("PUT", pathOf(name), sent), "action") as Answer<
        Action,
        WarningMeta
      >;
    },
    async revisions(name, query = {}) {
      const received = await channel.send("GET", `${pathOf(name)}/revisions`, { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly ActionRevision[]>;
    },
    async revision(name, revision) {
      const path = `${pathOf(name)}/revisions/${revision}`;
      return jsonAnswer(await channel.send("GET", path), "revision") as Answer<ActionRevision>;
    },
    async check(name, candidate, signal) {
      const sent = { body: requestBody(candidate), signal };
      return jsonAnswer(
        await channel.send("POST", `${pathOf(name)}/check`, sent),
        "verdict",
      ) as Answer<SchemaVerdict>;
    },
  };
}

function pathOf(name: string): string {
  return `/v1/actions/${encodeURIComponent(name)}`;
}
