import type { Replay, ReplayCount } from "../domain/replay.ts";
import type { Answer, ReplaysPort } from "../evreg.ts";
import { jsonAnswer, listAnswer } from "./answers.ts";
import { requestBody } from "./channel.ts";
import type { Channel, Received } from "./channel.ts";

const REPLAYS_PATH = "/v1/replays";

export function replaysOver(channel: Channel): ReplaysPort {
  const replay = (subscription: number, body: string): Promise<Received> =>
    channel.send("POST", `/v1/subscriptions/${subscription}/replay`, { body });

  return {
    async count(subscription, input) {
      const received = await replay(subscription, requestBody({ ...input, dry_run: true }));
      return jsonAnswer(received, "replayCount") as Answer<ReplayCount>;
    },
    async start(subscription, input) {
      return jsonAnswer(await replay(subscription, requestBody(input)), "replay") as Answer<Replay>;
    },
    async list(query = {}) {
      const received = await channel.send("GET", REPLAYS_PATH, { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly Replay[]>;
    },
    async get(id) {
      return jsonAnswer(await channel.send("GET", `${REPLAYS_PATH}/${id}`), "replay") as Answer<Replay>;
    },
    async cancel(id) {
      return jsonAnswer(
        await channel.send("POST", `${REPLAYS_PATH}/${id}/cancel`),
        "replay",
      ) as Answer<Replay>;
    },
  };
}
