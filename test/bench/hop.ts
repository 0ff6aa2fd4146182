import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import { Pool } from "undici";
import { answerCalls } from "./calls.ts";

// The least way from a publisher to a handler: one bare h3 hop and one bare undici request, nothing checked or kept.

let pool: Pool | undefined;
let path = "/";
let rowid = 0;

const app = new H3();
app.post("/v1/events", async (event) => {
  const body = await event.req.text();
  rowid += 1;
  const headers = { "content-type": "application/json", "webhook-id": `evt_${rowid}_1` };
  void pool?.request({ path, method: "POST", headers, body }).then((answer) => answer.body.dump());
  event.res.status = 201;
  return { data: { rowid } };
});
const server = createServer(toNodeHandler(app));

const calls = {
  /** Passes everything on to `handler`; answers its own port. */
  listen({ handler }: { handler: string }): Promise<number> {
    const { origin, pathname } = new URL(handler);
    pool = new Pool(origin, { connections: 64, pipelining: 1 });
    path = pathname;
    return new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    });
  },
};
export type HopCalls = typeof calls;

answerCalls(calls);
