import { githubTypes, loosened } from "../../support/github.ts";
import { HOSTILE_SCHEMAS, type HostileSchema } from "../hostile-schemas.ts";
import type { Observation, Rig, Scenario } from "../rig.ts";
import { atMost, ms, type Row } from "../row.ts";
import type { BenchServer } from "../server.ts";

const AT_ONCE = 4;
const TARGET_MS = 50;
const REPLAYED = 100;

interface Type {
  readonly action: string;
  readonly schemata: Record<string, unknown>;
  readonly payloads: readonly object[];
}

type Work = (server: BenchServer) => Promise<void>;

/** Does this with each of GitHub's types. */
function withTypes(ask: (server: BenchServer, type: Type) => Promise<unknown>): Work {
  return (server) => each(types(), (type) => ask(server, type));
}

/** What is done with schemas, one after the other, each on the state that those before have left. */
const WORKS: Readonly<Record<string, Work>> = {
  register: withTypes((server, { action, schemata }) =>
    server.send("POST", "/v1/actions", { action, application: "github", schemata }, 201),
  ),
  publish: withTypes(async (server, { action, payloads }) => {
    for (const payload of payloads) await server.send("POST", "/v1/events", { action, payload }, 201);
  }),
  check: withTypes((server, { action, schemata }) =>
    server.send("POST", `/v1/actions/${action}/check`, { schemata, replay: REPLAYED }, 200),
  ),
  refuse: withTypes((server, { action, schemata }) =>
    server.send("PUT", `/v1/actions/${action}`, { schemata: broken(schemata) }, 409),
  ),
  change: withTypes((server, { action, schemata }) =>
    server.send("PUT", `/v1/actions/${action}`, { schemata: widened(schemata) }, 200),
  ),
  hostile: (server) => each(HOSTILE_SCHEMAS, (one) => hostile(server, one)),
};

export const schemas: Scenario = {
  name: "schemas",
  summary:
    "The main thread while GitHub's 58 types and hostile schemas are registered, published, checked and changed.",
  async run(rig) {
    const rows: Row[] = [];
    const server = await rig.emptyServer();
    for (const [name, work] of Object.entries(WORKS)) {
      rig.options.say(`schemas: ${name}`);
      await rig.observe("schemas", name, server, () => work(server));
      rows.push(rowOf(name, rig));
    }
    await rig.retire("schemas", "empty", server);
    return rows;
  },
};

function rowOf(name: string, { observations }: Rig): Row {
  const seen = observations.findLast(({ on }) => on === name) as Observation;
  return {
    scenario: `schemas, ${name}`,
    measured: `delay p99 ${ms(seen.loopDelayP99Ms)}, max ${ms(seen.loopDelayMaxMs)}; CPU max`,
    ...atMost(seen.loopCpuMaxMs, TARGET_MS, ms),
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
  if ((await server.send("POST", "/v1/actions", input, 201, 400, 422)).status !== 201) return;
  await server.send("POST", "/v1/events", { action, payload }, 201, 422);
  await server.send("POST", `/v1/actions/${action}/check`, { schemata: next, replay: REPLAYED }, 200);
  await server.send("PUT", `/v1/actions/${action}`, { schemata: next }, 200, 409);
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
