import { OPERATIONS } from "../../api-operations.ts";
import { HTTP_STATUS } from "../../domain/error.ts";
import { NEW_TOKEN } from "../../domain/token.ts";
import { jsonReply } from "../response.ts";
import { failure, many, one, operation, ref, type Route, routeAt } from "./route.ts";
import { STREAM_QUERY, type StreamQuery, type StreamTopic } from "../../domain/stream.ts";
import { AUDIT_QUERY } from "../../domain/audit.ts";
import { ATTENTION_QUERY } from "../../domain/operations.ts";
import { STATS_QUERY } from "../../domain/stats/stats.ts";
import { PAGE_BYTES } from "../response-budget.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { record } from "../../model/field.ts";
import { META } from "../../model/meta.ts";

/** What a message has in its field `event`, with what it has as its data. */
const MESSAGES = [
  "`event`: an event; with `payload` if payloads were asked for, and also `payload_base64` if it has carriage returns, which a stream cannot carry",
  "`delivery`: the result of an attempt, or a delivery that ended without one",
  "`ready`: what happened before has all come",
  "`gap`: `reason` (`overrun`, `restart`, `expired` or `other_data`), `topics`, `missed` (at most so many; `null` if nobody knows) and `complete_since`",
];

/** The record, and the members that every failure has. */
const UNHEALTHY: JsonSchema = record({ data: ref("Health"), ...failure });

const CHECK_HEALTH = "Check that the service commits and delivers";

/** The media type of the text format of Prometheus. */
const MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The registered type of SQLite files. */
const SQLITE_MEDIA_TYPE = "application/vnd.sqlite3";

/** Tokens, what a server says of itself and of what happens, and a copy of its data. */
export const OPERATION_ROUTES: readonly Route[] = [
  operation("tokens.list", "listTokens", "List tokens, without their secrets", {
    scope: "admin",
    answer: ["The tokens' records.", many("Token")],
  }),
  operation("tokens.create", "createToken", "Create a token", {
    scope: "admin",
    body: NEW_TOKEN,
    status: 201,
    answer: ["The token; it is never shown again.", one("TokenWithSecret")],
  }),
  operation("tokens.revoke", "revokeToken", "Revoke a token", {
    description: "A token may revoke itself, whatever its scopes.",
    scope: "admin",
    answer: ["The revoked token's record.", one("Token")],
    failures: [409],
  }),
  operation("whoami", "whoAmI", "Who the caller is, what it may do, and which data it uses", {
    tag: "tokens",
    description: "Any valid token is enough. Where publishing needs no token, this needs none either.",
    access: "publish",
    answer: [
      "The token's name and scopes, the id of the data, and what goes for all subscriptions.",
      one("Identity"),
    ],
    maxBytes: 0,
  }),
  routeAt("GET /v1/stream", "stream", "Watch what happens, as server-sent events", {
    description: `Each message has an \`id\`. A client that connects again sends the last one as \`Last-Event-ID\`, which comes before \`since\`, and gets what it has missed. Events are read from the store and go on exactly, as long as they are kept. Results of deliveries go on from the last 10,000 since the server started; where that is not enough, a \`gap\` says so. Each connection has its own pace, and is cut off once it has taken nothing for a minute. A comment comes every 15 seconds. The stream ends when its token does, and when the server stops. At most 200 streams are open at once, 100 of one token; the more others have, the fewer.\n\nMessages by their \`event\`:\n\n${MESSAGES.map((line) => `- ${line}.`).join("\n")}`,
    query: STREAM_QUERY,
    headers: {
      "Last-Event-ID": { type: "string", description: "The id of the last message; begins after it." },
    },
    answers: {
      200: {
        description: "Messages, until either side ends the connection.",
        mediaType: "text/event-stream",
        schema: { type: "string" },
      },
    },
    failures: [429],
    async handle(evreg, request, { streams }) {
      const { topics, ...filters } = request.query as Omit<StreamQuery, "topics"> & { topics?: string };
      const lastId = request.header("last-event-id") ?? "";
      const query: StreamQuery = {
        ...filters,
        ...(topics === undefined ? {} : { topics: topics.split(",") as StreamTopic[] }),
        ...(lastId === "" ? {} : { since: lastId }),
      };
      const stream = await evreg.stream(query);
      return {
        status: 200,
        body: { bytes: undefined, chunks: streams.chunks(request, stream) },
        mediaType: "text/event-stream",
        // nginx would collect what should go out at once.
        headers: [["x-accel-buffering", "no"]],
        release: () => void stream.close(),
      };
    },
  }),
  operation("stats", "getStats", "Figures over time", {
    description:
      "What happened up to now, and what is unfinished. A token that is limited to applications gets the events of their actions and the deliveries of their subscriptions.",
    query: STATS_QUERY,
    answer: ["The figures.", one("Stats")],
  }),
  operation("audit.list", "listAudit", "List who changed what, newest first", {
    scope: "admin",
    description:
      "Changes of actions, subscriptions and tokens, replays that were begun or cancelled, skipped deliveries, and restores. Kept for `retention.audit` of the configuration.",
    query: AUDIT_QUERY,
    answer: ["The changes.", many("AuditEntry")],
  }),
  routeAt(OPERATIONS.health.target, "getHealth", CHECK_HEALTH, {
    tag: "health",
    access: "open",
    answers: {
      200: { description: "Healthy.", schema: one("Health") },
      503: { description: "Not healthy; `error` says why.", schema: UNHEALTHY },
    },
    async handle(evreg) {
      const { data } = await evreg.health();
      if (data.status === "ok") return jsonReply(200, { data });
      const error = data.reason ?? "The service is unavailable.";
      const failed = { data, error, details: {}, code: HTTP_STATUS.unavailable };
      return jsonReply(503, failed, [["retry-after", "2"]]);
    },
  }),
  routeAt("GET /metrics", "getMetrics", "Metrics for Prometheus", {
    tag: "health",
    description: "They cover all applications, so the scope must not be limited to one.",
    answers: {
      200: {
        description: "Metrics in the text format of Prometheus.",
        mediaType: "text/plain",
        schema: { type: "string" },
      },
    },
    async handle(evreg, request, { responses }) {
      return responses.answer(request, PAGE_BYTES, async () => ({
        status: 200,
        body: await evreg.metrics(),
        mediaType: MEDIA_TYPE,
      }));
    },
  }),
  operation("attention", "listAttention", "List what needs a person", {
    tag: "health",
    description:
      "Subscriptions that are deactivated, blocked, failing or slowed, those from which no consumer claims, what failed for good within a day, and pauses that hold deliveries or miss events. A subscription has one entry for its state at most, and one for what failed. What it costs does not grow with the deliveries there are.",
    query: ATTENTION_QUERY,
    answer: [
      "The entries, the gravest first, and of each kind what has lasted longest.",
      many("Attention", META.attention),
    ],
  }),
  operation("nodes", "listNodes", "List the servers on these data", {
    tag: "health",
    description:
      "One on a data folder; on a database each server and command that has it open. Each server sends the deliveries of its share of the subscriptions.",
    scope: "admin",
    answer: ["The nodes, in the order of their starts.", many("Node", META.nodes)],
  }),
  operation("doctor", "examine", "Diagnose the server", {
    tag: "health",
    description:
      "Checks the store, its folder and disk, the clock, tokens that expire soon, failing handlers and the backlog. Each finding says what to do. The answer is 200 even if something is wrong. `meta.time` is the server's clock.",
    scope: "admin",
    answer: ["The findings, one for each check.", many("Finding", META.findings)],
    maxBytes: 0,
  }),
  routeAt("GET /v1/backup", "getBackup", "Download a copy of all data", {
    tag: "health",
    description:
      "The data file as of one moment after the request. It has everything that was acknowledged before, and publishing goes on meanwhile. Secrets in it are encrypted or not, as in the data folder. The first byte comes once the copy is made, which takes seconds for each GB. The headers have its length and digest, to detect a download that was cut off. One backup runs at a time. It is cut off if the caller takes no more than 256 KiB in a minute, or if the server stops. `evreg restore` checks a backup and installs it.",
    scope: "admin",
    answers: {
      200: {
        description: "The data file.",
        mediaType: SQLITE_MEDIA_TYPE,
        schema: { type: "string", format: "binary" },
        headers: {
          "Repr-Digest": {
            type: "string",
            description: "RFC 9530: `sha-256=:<base64>:`, of the whole file.",
          },
          "Content-Disposition": { type: "string" },
        },
      },
    },
    failures: [409],
    async handle(evreg, request, { stopping }) {
      const backup = await request.untilDisconnect((signal) =>
        evreg.backup(AbortSignal.any([signal, stopping])),
      );
      const cut = (): void => request.disconnect();
      // A stop would wait for this caller, and cut it off in the end anyway.
      stopping.addEventListener("abort", cut);
      const release = (): void => {
        stopping.removeEventListener("abort", cut);
        // Who reads its content gets the error.
        backup.close().catch(() => undefined);
      };
      const digest = Buffer.from(backup.sha256, "hex").toString("base64");
      return {
        status: 200,
        body: { bytes: backup.bytes, chunks: backup.content() },
        mediaType: SQLITE_MEDIA_TYPE,
        headers: [
          ["repr-digest", `sha-256=:${digest}:`],
          ["content-disposition", 'attachment; filename="evreg-backup.db"'],
        ],
        // It is released even when nobody read it to its end.
        release,
      };
    },
  }),
];
