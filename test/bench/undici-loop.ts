import { Pool } from "undici";
import { signedRequest } from "../support/signed-request.ts";
import { answerCalls } from "./calls.ts";
import { payloadOf, WAITING_ACTION } from "./workload.ts";

// The most that delivering can do: undici posts the very bytes that evreg sends, signed one by one, and nothing else.

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
/** On two cores 16, 32, 64 and 128 did 18.5, 18.7, 18.9 and 18.4 thousand a second. */
const CONCURRENCY = 64;

interface UndiciLoop {
  readonly url: string;
  readonly requests: number;
}

/** Answers requests a second. */
async function post({ url, requests }: UndiciLoop): Promise<number> {
  const { origin, pathname: path } = new URL(url);
  const pool = new Pool(origin, { connections: CONCURRENCY, pipelining: 1 });
  const payloads = Array.from({ length: requests }, (_, event) => Buffer.from(payloadOf(event)));
  const startedMs = performance.now();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < requests) {
      const eventId = next + 1;
      const payload = payloads[next] ?? Buffer.alloc(0);
      next += 1;
      const { headers, body } = signedRequest({ eventId, action: WAITING_ACTION, payload, secret: SECRET });
      const answer = await pool.request({ path, method: "POST", headers, body });
      if (answer.statusCode !== 200) throw new Error(`The receiver answered ${answer.statusCode}.`);
      await answer.body.dump();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  const elapsedMs = performance.now() - startedMs;
  await pool.close();
  return requests / (elapsedMs / 1_000);
}

const calls = { post };
export type UndiciLoopCalls = typeof calls;

answerCalls(calls);
