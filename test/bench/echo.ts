import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import { answerCalls } from "./calls.ts";

// The least that can be done with a publish: h3 reads the JSON body and answers it.
const app = new H3();
app.post("/v1/events", (event) => event.req.json());
const server = createServer(toNodeHandler(app));

const calls = {
  listen: (): Promise<number> =>
    new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    }),
};
export type EchoCalls = typeof calls;

answerCalls(calls);
