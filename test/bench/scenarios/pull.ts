import { deliverAll, fill } from "../backlogs.ts";
import { startChild } from "../child.ts";
import type { ConsumersCalls } from "../consumers.ts";
import type { FillCalls } from "../fill.ts";
import { rateRows } from "../rounds.ts";
import type { Scenario } from "../scenario.ts";
import { startServer } from "../server.ts";
import { WAITING_ACTION } from "../workload.ts";

const EVENTS = 20_000;
const CONSUMERS = 4;
const TARGET = 0.5;
/** The least that a consumer may take of what would be its share. */
const LEAST_SHARE = 0.5;

export const pull: Scenario = {
  name: "pull",
  summary: "20,000 waiting deliveries to 4 consumers of one pull subscription, beside as many to a handler.",
  async run(rig) {
    const handler = await rig.handler("fast", "pull");
    const pushed: number[] = [];
    const pulled: number[] = [];
    const shares: (readonly number[])[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`pull, round ${round + 1}: to a handler`);
      const pushPlace = rig.newPlace();
      await fill(pushPlace, [handler], EVENTS);
      await rig.receiver.call("reset", { record: false });
      const pushing = await startServer(pushPlace);
      pushed.push(await deliverAll(rig, pushing, { path: "/fast/pull", deliveries: EVENTS }));
      await rig.retire("pull", "push", pushing);

      rig.options.say(`pull, round ${round + 1}: to consumers`);
      const place = rig.newPlace();
      const filler = startChild<FillCalls>("fill.ts");
      const subscription = { application: "billing", subscription: "consumers", mode: "pull" } as const;
      const { folder } = place;
      await filler.call("fill", {
        folder,
        action: WAITING_ACTION,
        subscriptions: [subscription],
        events: EVENTS,
      });
      await filler.end("SIGTERM");
      const server = await startServer(place);
      const { port, token } = server;
      const consumers = startChild<ConsumersCalls>("consumers.ts");
      const url = `http://127.0.0.1:${port}`;
      const work = () =>
        consumers.call("consume", { url, token, subscription: 1, consumers: CONSUMERS, deliveries: EVENTS });
      const { rate, taken, repeated } = await rig.observe("pull", "empty", server, work, () => EVENTS);
      await consumers.end("SIGKILL");
      await rig.retire("pull", "empty", server);
      pulled.push(rate);
      shares.push(taken);
      if (repeated > 0) rig.failures.push(`pull: ${repeated} deliveries were given twice.`);
      if (Math.min(...taken) < (EVENTS / CONSUMERS) * LEAST_SHARE) {
        rig.failures.push(`pull: the consumers took ${taken.join(", ")}, which is not fair.`);
      }
    }
    return rateRows({
      scenario: "pull",
      ceiling: { name: "push", rates: pushed },
      servers: new Map([["empty", pulled]]),
      target: TARGET,
      unit: "deliveries",
      detail: { shares },
    });
  },
};
