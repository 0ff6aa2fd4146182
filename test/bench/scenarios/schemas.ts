import { githubTypes, loosened } from "../../support/github.ts";
import { HOSTILE_SCHEMAS, type HostileSchema } from "../hostile-schemas.ts";
import type { Observation, Rig } from "../rig.ts";
import { ms, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import type { BenchServer } from "../server.ts";

const AT_ONCE = 4;
const TARGET_MS = 50;
const REPLAYED = 100;

interface Work {
  readonly name: string;
  run(server: BenchServer): Promise<void>;
}

interface Type {
  readonly action: string;
  readonly schemata: Record<string, unknown>;
  readonly payloads: readonly object[];
}

/** What is done with schemas, one after the other, each on the state that those before have left. */
const WORKS: readonly Work[] = [
  {
    name: "register",
    run: (server) =>
      each(types(), ({ action, schemata }) =>
        send(server, "POST", "/v1/actions", { action, application: "github", schemata }, 201),
      ),
  },
  {
    name: "publish",
    run: (server) =>
      each(
        types().flatMap(({ action, payloads }) => payloads.map((payload) => ({ action, payload }))),
        (event) => send(server, "POST", "/v1/events", event, 201),
      ),
  },
  {
    name: "check",
    run: (server) =>
      each(types(), ({ action, schemata }) =>
        send(server, "POST", `/v1/actions/${action}/check`, { schemata, replay: REPLAYED }, 200),
      ),
  },
  {
    name: "refuse",
    run: (server) =>
      each(types(), ({ action, schemata }) =>
        send(server, "PUT", `/v1/actions/${action}`, { schemata: broken(schemata) }, 409),
      ),
  },
  {
    name: "change",
    run: (server) =>
      each(types(), ({ action, schemata }) =>
        send(server, "PUT", `/v1/actions/${action}`, { schemata: widened(schemata) }, 200),
      ),
  },
  {
    name: "hostile",
    run: (server) => each(HOSTILE_SCHEMAS, (one) => hostile(server, one)),
  },
];

export const schemas: Scenario = {
  name: "schemas",
  summary:
    "The main thread while GitHub's 58 types and hostile schemas are registered, published, checked and changed.",
  async run(rig) {
    const rows: Row[] = [];
    const server = await rig.emptyServer();
    for (const work of WORKS) {
      rig.options.say(`schemas: ${work.name}`);
      await rig.observe("schemas", work.name, server, () => work.run(server));
      rows.push(rowOf(work.name, rig));
    }
    await rig.retire("schemas", "empty", server);
    return rows;
  },
};

function rowOf(name: string, { observations }: Rig): Row {
  const seen = observations.findLast(({ on }) => on === name) as Observation;
  return {
    scenario: `schemas, ${name}`,
    ceiling: "-",
    measured: `delay p99 ${ms(seen.loopDelayP99Ms)}, max ${ms(seen.loopDelayMaxMs)}`,
    figure: `CPU max ${ms(seen.loopCpuMaxMs)}`,
    target: `≤ ${TARGET_MS} ms`,
    met: seen.loopCpuMaxMs <= TARGET_MS,
    detail: undefined,
  };
}

/** GitHub's types, loose enough for what was recorded of them. */
function types(): Type[] {
  return githubTypes().map(({ name, schemata, payloads }) => ({
    action: name,
    schemata: loosened(schemata),
    payloads,
  }));
}

async function hostile(
  server: BenchServer,
  { name, schemata, payload, next = { ...schemata, required: ["never_sent"] } }: HostileSchema,
): Promise<void> {
  const action = `hostile.${name}`;
  const input = { action, application: "hostile", schemata };
  if ((await send(server, "POST", "/v1/actions", input, 201, 400, 422)) !== 201) return;
  await send(server, "POST", "/v1/events", { action, payload }, 201, 422);
  await send(server, "POST", `/v1/actions/${action}/check`, { schemata: next, replay: REPLAYED }, 200);
  await send(server, "PUT", `/v1/actions/${action}`, { schemata: next }, 200, 409);
}

/** Every object is a list by now. */
function broken(schemata: object): object {
  return JSON.parse(JSON.stringify(schemata).replaceAll('"type":"object"', '"type":"array"')) as object;
}

/** One optional property more wherever there are any. */
function widened(schemata: object): object {
  const added = JSON.stringify(schemata).replaceAll(
    '"properties":{',
    '"properties":{"added_later":{"type":"string"},',
  );
  return JSON.parse(added.replaceAll('{"type":"string"},}', '{"type":"string"}}')) as object;
}

async function each<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
  const waiting = [...all];
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) await work(one);
    }),
  );
}

async function send(
  { port, token }: BenchServer,
  method: "POST" | "PUT",
  path: string,
  body: object,
  ...statuses: number[]
): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (statuses.includes(answer.status)) return answer.status;
  throw new Error(`${method} ${path} was answered with ${answer.status}: ${text.slice(0, 500)}`);
}
