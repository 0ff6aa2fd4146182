import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { AuditedChange, AuditEntry } from "../../src/domain/audit.ts";
import { AUDITED_CHANGES } from "../../src/model/audit.ts";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";
import { serveHere } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());

/** Rowids of what there is to be changed. */
interface Records {
  /** A pull subscription with deliveries that wait for a retry. */
  readonly pulling: number;
  readonly waiting: readonly number[];
  /** Of the record that the last step with an answer made. */
  made: number;
  /** A paused subscription, which is made and changed. */
  paused: number;
}

interface Step {
  readonly change: AuditedChange;
  readonly request: (records: Records) => [method: string, path: string, body?: object];
  /** Left out for what only a server does. */
  readonly command?: (records: Records) => string;
}

/** In an order in which each can be done. */
const STEPS: readonly Step[] = [
  {
    change: "action.created",
    request: () => ["POST", "/v1/actions", { action: "a.made", application: "shop", schemata: {} }],
    command: () => "actions create a.made --application shop --schema -",
  },
  {
    change: "action.updated",
    request: () => ["PUT", "/v1/actions/a.made", { compatibility: "none" }],
    command: () => "actions update a.made --mode none",
  },
  {
    change: "subscription.created",
    request: () => [
      "POST",
      "/v1/subscriptions",
      { application: "shop", subscription: "made", action: "a.base", mode: "pull", active: false },
    ],
    command: () =>
      "subscriptions create --application shop --subscription made --action a.base --mode pull --no-active",
  },
  {
    change: "subscription.updated",
    request: ({ paused }) => ["PUT", `/v1/subscriptions/${paused}`, { max_retries: 3 }],
    command: ({ paused }) => `subscriptions update ${paused} --max-retries 3`,
  },
  {
    change: "subscription.secret_rotated",
    request: ({ paused }) => ["POST", `/v1/subscriptions/${paused}/rotate-secret`, {}],
    command: ({ paused }) => `subscriptions rotate-secret ${paused}`,
  },
  {
    change: "subscription.secret_used",
    request: ({ pulling, paused }) => [
      "POST",
      `/v1/subscriptions/${pulling}/claims`,
      { wait_ms: 0, sign_as: paused },
    ],
  },
  {
    change: "replay.started",
    request: ({ paused }) => [
      "POST",
      `/v1/subscriptions/${paused}/replay`,
      { from: "2020-01-01T00:00:00Z", status: "all" },
    ],
    command: ({ paused }) => `subscriptions replay ${paused} --from 2020-01-01 --status all`,
  },
  {
    change: "replay.cancelled",
    request: ({ made }) => ["POST", `/v1/replays/${made}/cancel`],
    command: ({ made }) => `replays cancel ${made}`,
  },
  {
    change: "delivery.retried",
    request: ({ waiting }) => ["POST", `/v1/deliveries/${waiting[0]}/retry`],
    command: ({ waiting }) => `deliveries retry ${waiting[0]}`,
  },
  {
    change: "delivery.skipped",
    request: ({ waiting }) => ["POST", `/v1/deliveries/${waiting[1]}/skip`],
    command: ({ waiting }) => `deliveries skip ${waiting[1]}`,
  },
  {
    change: "subscription.deleted",
    request: ({ paused }) => ["DELETE", `/v1/subscriptions/${paused}`],
    command: ({ paused }) => `subscriptions delete ${paused}`,
  },
  {
    change: "token.created",
    request: () => ["POST", "/v1/tokens", { name: "made", scopes: ["read"] }],
    command: () => "tokens create made --scope read",
  },
  {
    change: "token.revoked",
    request: ({ made }) => ["DELETE", `/v1/tokens/${made}`],
    command: ({ made }) => `tokens revoke ${made}`,
  },
];

type Ask = <T>(method: string, path: string, body?: object) => Promise<T>;

function asker(url: string, token?: string): Ask {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return async <T>(method: string, path: string, body?: object): Promise<T> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { "content-type": "application/json", ...authorization },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { data: T };
    expect(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`).toBe(true);
    return answer.data;
  };
}

async function prepare(ask: Ask): Promise<Records> {
  await ask("POST", "/v1/actions", { action: "a.base", application: "shop", schemata: {} });
  const base = { application: "shop", subscription: "base", action: "a.base" };
  const pull = { ...base, mode: "pull", retry_schedule: [3_600_000], max_retries: 5 };
  const { rowid: pulling } = await ask<{ rowid: number }>("POST", "/v1/subscriptions", pull);
  for (let event = 0; event < 2; event += 1)
    await ask("POST", "/v1/events", { action: "a.base", payload: {} });
  const claims = `/v1/subscriptions/${pulling}/claims`;
  const claimed = await ask<{ lease: string; delivery_id: number }[]>("POST", claims, { max: 2, wait_ms: 0 });
  const results = claimed.map(({ lease }) => ({ lease, outcome: "failed", reason: "for now" }));
  await ask("POST", `/v1/subscriptions/${pulling}/finishes`, { results });
  return { pulling, waiting: claimed.map(({ delivery_id }) => delivery_id), made: 0, paused: 0 };
}

type Origin = Pick<AuditEntry, "by" | "token_id" | "address">;

/** Does each step, and looks at what is kept of all. */
async function expectOrigin(
  steps: readonly Step[],
  records: Records,
  act: (step: Step) => Promise<{ rowid?: number }>,
  audit: () => Promise<readonly AuditEntry[]>,
  origin: Origin,
): Promise<void> {
  const known = (await audit()).length;
  for (const step of steps) {
    const { rowid } = await act(step);
    if (rowid !== undefined) records.made = rowid;
    if (step.change === "subscription.created") records.paused = records.made;
  }
  const all = await audit();
  const kept = all
    .slice(0, all.length - known)
    .map(({ change, by, token_id, address }) => ({ change, by, token_id, address }))
    .toReversed();
  expect(kept).toEqual(steps.map(({ change }) => ({ change, ...origin })));
}

test("each change that is kept has its row, but for a restore, which is a command only", () => {
  const changes = new Set(STEPS.map(({ change }) => change));
  expect([...changes, "data.restored"].toSorted()).toEqual([...AUDITED_CHANGES].toSorted());
});

function newFolder(name: string): string {
  const data = join(folder.path, name);
  mkdirSync(data, { mode: 0o700 });
  return data;
}

describe("the origin of each change", () => {
  test("is the token's name and the address, over HTTP with a token", async () => {
    const data = newFolder("token");
    const server = await serveHere(data);
    try {
      const ask = asker(server.url, readFileSync(join(data, "token"), "utf8").trim());
      const records = await prepare(ask);
      const tokens = await ask<{ rowid: number }[]>("GET", "/v1/tokens");
      await expectOrigin(
        STEPS,
        records,
        ({ request }) => ask(...request(records)),
        () => ask("GET", "/v1/audit"),
        { by: "bootstrap", token_id: tokens[0]!.rowid, address: "127.0.0.1" },
      );
    } finally {
      await server.stop();
    }
  });

  test("is local and the address, over HTTP where no token is needed", async () => {
    const server = await serveHere(newFolder("dev"), { dev: true });
    try {
      const ask = asker(server.url);
      const records = await prepare(ask);
      await expectOrigin(
        STEPS,
        records,
        ({ request }) => ask(...request(records)),
        () => ask("GET", "/v1/audit"),
        { by: "local", token_id: null, address: "127.0.0.1" },
      );
    } finally {
      await server.stop();
    }
  });

  test("is local and no address, by a command on the data folder", async () => {
    const data = newFolder("commands");
    const server = await serveHere(data, { dev: true });
    const records = await prepare(asker(server.url));
    await server.stop();
    const { run } = commandLine(folder.path, { EVREG_DATA: data });
    const json = async <T>(words: readonly string[]): Promise<T> => {
      const { code, stdout, stderr } = await run([...words, "--json"], { input: "{}" });
      expect(code, stderr).toBe(0);
      return (JSON.parse(stdout) as { data: T }).data;
    };
    await expectOrigin(
      STEPS.filter(({ command }) => command !== undefined),
      records,
      ({ command }) => json(command!(records).split(" ")),
      () => json(["audit", "--limit", "500"]),
      { by: "local", token_id: null, address: null },
    );
  });
});
