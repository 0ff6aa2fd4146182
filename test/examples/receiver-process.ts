import { spawn, type ChildProcess } from "node:child_process";
import { createServer, type Server } from "node:net";
import { Webhook } from "standardwebhooks";
import { expect } from "vitest";
import { cleanEnv } from "../support/program.ts";
import { until } from "../support/until.ts";

/** A receiver that runs, and what it has printed. */
export interface ReceiverProcess {
  readonly url: string;
  readonly port: number;
  readonly printed: { stdout: string; stderr: string };
  stop(): Promise<void>;
}

interface Start {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly port: number;
  readonly env: Record<string, string>;
}

/** A receiver that listens by itself, on PORT. */
export async function startReceiver({ command, cwd, port, env }: Start): Promise<ReceiverProcess> {
  const [program = "", ...words] = command;
  const child = spawn(program, words, {
    cwd,
    env: cleanEnv({ ...env, PORT: String(port) }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed = { stdout: "", stderr: "" };
  child.stdout.on("data", (piece: Buffer) => (printed.stdout += piece.toString()));
  child.stderr.on("data", (piece: Buffer) => (printed.stderr += piece.toString()));
  const url = `http://127.0.0.1:${port}/`;
  await until(`${command.join(" ")} listens`, async () => {
    if (child.exitCode !== null) throw new Error(`It ended: ${printed.stderr}`);
    return fetch(url, { method: "POST" }).then(
      () => true,
      () => false,
    );
  });
  return { url, port, printed, stop: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGKILL");
  await ended;
}

/** A receiver that is started for each connection, with the connection as its stdin and stdout, as inetd does. */
export async function listenFor({ command, cwd, port, env }: Start): Promise<ReceiverProcess> {
  const [program = "", ...words] = command;
  const printed = { stdout: "", stderr: "" };
  const running = new Set<ChildProcess>();
  const server: Server = createServer({ pauseOnConnect: true }, (socket) => {
    const child = spawn(program, words, { cwd, env: cleanEnv(env), stdio: [socket, socket, "pipe"] });
    socket.destroy();
    running.add(child);
    child.stderr?.on("data", (piece: Buffer) => (printed.stderr += piece.toString()));
    child.once("close", () => running.delete(child));
  });
  await new Promise<void>((resolve) => {
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${port}/`,
    port,
    printed,
    async stop() {
      await Promise.all([...running].map(stop));
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const BODY =
  '{"event_id":"42","action":"order.created","payload":{"id":"A-1"},"timestamp":"2026-01-02T00:00:00.000Z"}';

/** The headers of a delivery as the Standard Webhooks library signs it. */
function signed(secret: string, ageMs = 0): Record<string, string> {
  const sent = new Date(Date.now() - ageMs);
  return {
    "content-type": "application/json",
    "webhook-id": "evt_42_7",
    "webhook-timestamp": String(Math.floor(sent.getTime() / 1_000)),
    "webhook-signature": new Webhook(secret).sign("evt_42_7", sent, BODY),
  };
}

/** Sends forged, altered and old requests, and one that is only nearly too old. */
export async function expectToRefuseAllButGenuine(url: string, secret: string): Promise<void> {
  const statusOf = async (headers: Record<string, string>, body = BODY): Promise<number> =>
    (await fetch(url, { method: "POST", headers, body })).status;
  const other = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
  const genuine = signed(secret);
  const { "webhook-signature": signature = "", ...unsigned } = genuine;
  const refused: [string, Record<string, string>, string?][] = [
    ["no signature", unsigned],
    ["no headers", {}],
    ["another secret", signed(other)],
    ["another body", genuine, `${BODY} `],
    ["another id", { ...genuine, "webhook-id": "evt_43_7" }],
    ["a signature cut short", { ...genuine, "webhook-signature": signature.slice(0, -4) }],
    ["another version", { ...genuine, "webhook-signature": signature.replace("v1,", "v2,") }],
    ["too old", signed(secret, 310_000)],
    ["too new", signed(secret, -310_000)],
    ["no time", { ...genuine, "webhook-timestamp": "now" }],
  ];
  const statuses = await Promise.all(
    refused.map(async ([why, headers, body]) => [why, await statusOf(headers, body)]),
  );
  expect.soft(statuses).toEqual(refused.map(([why]) => [why, 401]));
  expect.soft(await statusOf(signed(secret, 290_000)), "nearly too old").toBe(204);
  const several = `${signed(other)["webhook-signature"]} ${signature}`;
  expect.soft(await statusOf({ ...genuine, "webhook-signature": several }), "several signatures").toBe(204);
}
