import { join } from "node:path";
import type { World } from "./world.ts";

/** How one command is run so that it succeeds, and so that what it is asked for is not there. */
export interface Row {
  /** @param run from 0: each has records of its own, so that all of them succeed */
  readonly ok: (world: World, run: number) => string;
  /** `null` where nothing is asked for by name. */
  readonly missing: string | null;
  /** On stdin. */
  readonly input?: (run: number) => string;
  /** What differs from run to run beyond times, secrets and places, so that only the form of the rest is kept. */
  readonly varies?: "values" | "lines";
  /** Formats that are refused as usage. */
  readonly refuses?: readonly string[];
  /** Its text for people is one for programs: jsonl prints the document. */
  readonly isText?: true;
  /** A server that cannot be asked is what it tells of, not a failure of its own. */
  readonly reportsOfServer?: true;
  /** Acts on no data folder, or makes the one it is given. */
  readonly place?: "none" | "makes folder";
}

const NAME = "no.such";
const ID = "999999";
const SUBSCRIBE = "--application made --handler https://example.com/hooks";
const SINCE = "--from 2020-01-01 --status missed";

/** By the command's id in the manifest. `null`, with the reason beside it, for what cannot be run to an end. */
export const ROWS: Readonly<Record<string, Row | null>> = {
  apply: {
    ok: () => "--file -",
    input: (run) => `actions: [{action: applied${run}, application: made, schemata: {type: object}}]`,
    missing: null,
    place: "makes folder",
  },
  attention: { ok: () => "--limit 1", missing: null, varies: "values" },
  audit: { ok: () => "--limit 3", missing: null, varies: "values" },
  backup: { ok: ({ folder }) => `${join(folder, "copy.db")} --force`, missing: null, varies: "values" },
  // For shells, and silent whatever is wrong; completion.test.ts has its output.
  complete: null,
  completion: { ok: () => "bash", missing: null, varies: "lines", isText: true, place: "none" },
  doctor: { ok: () => "", missing: null, varies: "lines", reportsOfServer: true },
  export: { ok: () => "--application shop", missing: null, refuses: ["jsonl"] },
  import: {
    ok: () => "- --application shop",
    input: () =>
      "openapi: 3.1.0\nwebhooks: {a.b: {post: {requestBody: {content: {application/json: {schema: {type: object}}}}}}}",
    missing: null,
    place: "none",
    refuses: ["jsonl"],
  },
  // Runs until it is stopped; listen.test.ts has its output.
  listen: null,
  nodes: { ok: () => "", missing: null, varies: "values" },
  stats: { ok: () => "--range 24h", missing: "--subscription no/such", varies: "values" },
  migrate: { ok: () => "--status", missing: null, place: "makes folder", varies: "values" },
  // Needs a database; move.test.ts has its output.
  move: null,
  publish: { ok: (_, run) => `order.paid {"id":${run}}`, missing: `${NAME} {}` },
  restore: {
    ok: ({ folder, backup }, run) => `${backup} --data ${join(folder, `restored${run}`)}`,
    missing: null,
    place: "none",
    varies: "values",
  },
  // Runs until it is stopped; serve.test.ts has its output.
  serve: null,
  whoami: { ok: () => "", missing: null },
  "actions:check": { ok: () => "order.paid --schema schema.json", missing: `${NAME} --schema schema.json` },
  "actions:create": {
    ok: (_, run) => `made${run} --application made --schema schema.json`,
    missing: null,
    place: "makes folder",
  },
  "actions:deprecate": { ok: (_, run) => `order.changed${run}`, missing: NAME },
  "actions:get": { ok: () => "order.created", missing: NAME },
  "actions:history": { ok: () => "order.created", missing: NAME },
  "actions:list": { ok: () => "--application shop", missing: null },
  "actions:retire": { ok: (_, run) => `order.changed${run}`, missing: NAME },
  "actions:sample": { ok: () => "order.created", missing: NAME },
  "actions:update": { ok: (_, run) => `order.changed${run} --mode none`, missing: `${NAME} --mode none` },
  "actions:validate": { ok: () => 'order.created {"id":1}', missing: `${NAME} {}` },
  "config:example": { ok: () => "", missing: null, varies: "lines", isText: true, place: "none" },
  "config:show": { ok: () => "", missing: null, varies: "values" },
  "deliveries:get": { ok: ({ found }) => `${found.quiet.delivery}`, missing: ID },
  "deliveries:list": { ok: ({ found }) => `--event ${found.quiet.event}`, missing: null },
  "deliveries:retry": { ok: ({ found }, run) => `${found.failed[run]}`, missing: ID },
  "deliveries:skip": { ok: ({ found }, run) => `${found.waiting[run]}`, missing: ID },
  "events:get": { ok: () => "1", missing: ID },
  "events:list": { ok: () => "--action order.created", missing: null },
  "replays:cancel": { ok: ({ found }, run) => `${found.replays[run]}`, missing: ID },
  "replays:get": { ok: ({ found }) => `${found.replays[0]}`, missing: ID },
  "replays:list": { ok: () => "--status cancelled", missing: null },
  "subscriptions:attempts": { ok: () => "1 --limit 1", missing: ID, varies: "values" },
  "subscriptions:create": {
    ok: (_, run) => `${SUBSCRIBE} --action order.paid --subscription made${run}`,
    missing: `${SUBSCRIBE} --action no.such --subscription made`,
  },
  "subscriptions:delete": { ok: ({ found }, run) => `${found.paused[run]}`, missing: ID },
  "subscriptions:get": { ok: () => "1", missing: ID },
  "subscriptions:list": { ok: () => "--application billing", missing: null },
  "subscriptions:replay": {
    ok: ({ found }, run) => `${found.replayable[run]} ${SINCE}`,
    missing: `${ID} ${SINCE}`,
  },
  "subscriptions:rotate-secret": { ok: ({ found }, run) => `${found.replayable[run]}`, missing: ID },
  // Sends to a handler, which the world here has not; subscription-test.test.ts has its output.
  "subscriptions:test": null,
  // Both follow what happens; tail.test.ts has their output.
  "events:tail": null,
  "deliveries:tail": null,
  "subscriptions:update": {
    ok: ({ found }, run) => `${found.replayable[run]} --max-retries 3`,
    missing: `${ID} --max-retries 3`,
  },
  "tokens:create": { ok: (_, run) => `made${run} --scope read`, missing: null, place: "makes folder" },
  "tokens:list": { ok: () => "", missing: null, varies: "values" },
  "tokens:revoke": { ok: ({ found }, run) => `${found.tokens[run]}`, missing: ID },
};
