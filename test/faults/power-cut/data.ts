import { mkdirSync } from "node:fs";
import { expect } from "vitest";
import { fileSql } from "../../support/file-sql.ts";
import { post } from "../../support/post.ts";
import { type Outcome, startProgram } from "../../support/program.ts";
import { Ledger } from "../ledger.ts";
import { publish, register } from "../fault.ts";

export async function ended(run: Promise<Outcome>): Promise<Outcome> {
  const outcome = await run;
  expect(outcome.code, outcome.stderr).toBe(0);
  return outcome;
}

/**
 * Makes a data folder with an action, a subscription and `events` events; with SIGKILL its log is left. Answers a secret that
 * is in it.
 */
export async function makeData(
  data: string,
  handler: string,
  events: number,
  end: "SIGKILL" | "SIGTERM" = "SIGTERM",
): Promise<string> {
  mkdirSync(data, { recursive: true });
  const server = await startProgram(data, ["--dev"]);
  await register(server.url, handler);
  const ledger = new Ledger();
  for (let n = 0; n < events; n += 50) {
    await Promise.all(Array.from({ length: 50 }, () => publish(server.url, ledger)));
  }
  const rotation = await post(`${server.url}/v1/subscriptions/1/rotate-secret`, {});
  const { data: rotated } = (await rotation.json()) as { data: { secret: string } };
  await server.end(end);
  return rotated.secret;
}

/** How many a data file has, which must be whole. */
export function eventsIn(file: string): number {
  const [found] = fileSql(
    file,
    "SELECT (SELECT count(*) FROM event) AS events, (SELECT integrity_check FROM pragma_integrity_check) AS whole",
  );
  expect(found?.["whole"]).toBe("ok");
  return Number(found?.["events"]);
}
