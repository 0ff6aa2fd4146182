import { EVENT_LIMITS } from "../../domain/event.ts";
import { DELIVERY_STATE } from "./queue/delivery-state.ts";
import { FIRST_MS, LAST_MS } from "./sql.ts";

/** The most bytes of a response: the beginning of an answer, or why an address was refused. Both come to far less. */
const MAX_RESPONSE_BYTES = 16 * 1_024;

// Limits of columns. They are those of requests or wider, as nothing that evreg stores may be refused here. A CHECK is met by
// NULL, so an optional column needs no other one.

const MAX_INTEGER = Number.MAX_SAFE_INTEGER;
const ID = `BETWEEN 1 AND ${MAX_INTEGER}`;
const COUNT = `BETWEEN 0 AND ${MAX_INTEGER}`;
const TIME = `BETWEEN ${FIRST_MS} AND ${LAST_MS}`;
/** A length of time of up to a thousand years, in milliseconds. */
const SPAN = `BETWEEN 0 AND ${366_000 * 86_400_000}`;
const STATUS_CODE = "BETWEEN 100 AND 999";

/** Limits a text, and refuses NUL in it, as the engine reads text up to the first NUL. */
const text = (column: string, maxBytes: number): string =>
  `octet_length(${column}) <= ${maxBytes} AND instr(${column}, char(0)) = 0`;
/** Limits a name to 128 characters, as strings count them: each comes to 3 bytes at most. */
const label = (column: string): string => `${column} <> '' AND ${text(column, 3 * 128)}`;
const name = (column: string, characters: string): string =>
  `octet_length(${column}) BETWEEN 1 AND 128 AND ${column} NOT GLOB '*[^${characters}]*'`;
const actionName = (column: string): string => name(column, "A-Za-z0-9_.-");
const actionPattern = (column: string): string => name(column, "A-Za-z0-9_.*-");
const json = (column: string, maxBytes: number): string =>
  `octet_length(${column}) <= ${maxBytes} AND json_valid(${column})`;
const hex = (column: string, digits: number): string =>
  `octet_length(${column}) = ${digits} AND ${column} NOT GLOB '*[^0-9a-f]*'`;
/** Limits a secret, or 2 KiB of a bearer value, with what encrypting them adds. */
const secret = (column: string): string => text(column, 16_384);

/**
 * All tables and indexes. Comments stand between the statements: the engine keeps those within them in the file, and a file is
 * compared with this text.
 */
const SCHEMA = `
-- version counts every change of the row: what was decided on an older one is not written.
-- built_in: its events are published by evreg about itself. successor is the name of another action; names never change.
CREATE TABLE action (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid ${ID}),
  action TEXT NOT NULL UNIQUE CHECK (${actionName("action")}),
  application TEXT NOT NULL CHECK (${label("application")}),
  revision INTEGER NOT NULL CHECK (revision ${ID}),
  version INTEGER NOT NULL DEFAULT 1 CHECK (version ${ID}),
  built_in INTEGER NOT NULL DEFAULT 0 CHECK (built_in IN (0, 1)),
  compatibility TEXT NOT NULL DEFAULT 'full' CHECK (compatibility IN ('full', 'producer', 'consumer', 'none')),
  deprecated_ms INTEGER CHECK (deprecated_ms ${TIME}),
  retired_ms INTEGER CHECK (retired_ms ${TIME}),
  successor TEXT CHECK (${actionName("successor")}),
  created_ms INTEGER NOT NULL CHECK (created_ms ${TIME})
) STRICT;

-- compatibility is the mode in which it was accepted; NULL for the first revision of an action, and those of old versions.
CREATE TABLE action_revision (
  action_id INTEGER NOT NULL REFERENCES action (rowid),
  revision INTEGER NOT NULL CHECK (revision ${ID}),
  schemata TEXT NOT NULL CHECK (${json("schemata", 1_048_576)}),
  compatibility TEXT CHECK (compatibility IN ('full', 'producer', 'consumer', 'none')),
  created_ms INTEGER NOT NULL CHECK (created_ms ${TIME}),
  PRIMARY KEY (action_id, revision)
) STRICT, WITHOUT ROWID;

-- Rowids of events and deliveries rise with their time, so a range of time is a range of rowids. Where the clock was set back,
-- a row in clock_step says from which rowids on times rise anew.
-- idempotency_application is the application in which the key was used: an action can move to another one, and its keys stay.
-- checksum: see events/payloads.ts; NULL for events of old versions. The payload is the last column, so that the others are
-- read without it.
CREATE TABLE event (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid ${ID}),
  action_id INTEGER NOT NULL REFERENCES action (rowid),
  revision INTEGER NOT NULL CHECK (revision ${ID}),
  timestamped_ms INTEGER NOT NULL CHECK (timestamped_ms ${TIME}),
  idempotency_key TEXT CHECK (octet_length(idempotency_key) BETWEEN 1 AND 255 AND idempotency_key NOT GLOB '*[^ -~]*'),
  idempotency_application TEXT CHECK (${label("idempotency_application")}),
  checksum INTEGER CHECK (checksum BETWEEN 0 AND ${2 ** 32 - 1}),
  payload BLOB NOT NULL CHECK (octet_length(payload) <= ${EVENT_LIMITS.payloadMaxBytes}),
  CHECK ((idempotency_key IS NULL) = (idempotency_application IS NULL))
) STRICT;
CREATE INDEX event_action ON event (action_id);
CREATE UNIQUE INDEX event_idempotency_key ON event (idempotency_key, idempotency_application)
  WHERE idempotency_key IS NOT NULL;
CREATE TABLE clock_step (
  first_event INTEGER NOT NULL CHECK (first_event ${COUNT}),
  first_delivery INTEGER NOT NULL CHECK (first_delivery ${COUNT}),
  noticed_ms INTEGER NOT NULL CHECK (noticed_ms ${TIME})
) STRICT;

-- The largest rowid and the latest time of the events that retention has removed; without a row, none were.
CREATE TABLE removed_events (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  last_event INTEGER NOT NULL CHECK (last_event ${ID}),
  last_ms INTEGER NOT NULL CHECK (last_ms ${TIME})
) STRICT;

-- How many events of an action (of all actions: 0) are in a block of rowids; see events/counts.ts. The blocks of an action are
-- together, so that their sum is quick.
CREATE TABLE event_count (
  action_id INTEGER NOT NULL CHECK (action_id ${COUNT}),
  block INTEGER NOT NULL CHECK (block ${COUNT}),
  events INTEGER NOT NULL CHECK (events ${COUNT}),
  PRIMARY KEY (action_id, block)
) STRICT, WITHOUT ROWID;

-- A deleted subscription stays, so that its deliveries keep their names. Of mode pull its handler is empty.
-- action is the name of an action, a pattern such as order.*, or *. settings: JSON of the members of SubscriptionSettings that
-- are set. order_key is apart from them, as it decides which deliveries may be claimed: a JSON Pointer, empty for one order of
-- all deliveries, NULL for none. No attempt starts before slowed_until_ms.
-- failing_since_ms, last_failure_ms, failing_total_ms: since the last success, when the first attempt failed, and the last, and
-- what counts of the time between. last_claim_ms is to the minute. inactive_since_ms is NULL also where older forms do not tell.
CREATE TABLE subscription (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid ${ID}),
  application TEXT NOT NULL CHECK (${label("application")}),
  subscription TEXT NOT NULL CHECK (${label("subscription")}),
  action TEXT NOT NULL CHECK (${actionPattern("action")}),
  mode TEXT NOT NULL DEFAULT 'push' CHECK (mode IN ('push', 'pull')),
  handler TEXT NOT NULL CHECK (${text("handler", 8_192)}),
  max_retries INTEGER NOT NULL CHECK (max_retries BETWEEN 0 AND 1000),
  active INTEGER NOT NULL CHECK (active IN (0, 1)),
  inactive_since_ms INTEGER CHECK (inactive_since_ms ${TIME}),
  disabled_reason TEXT CHECK (${text("disabled_reason", 4_096)}),
  settings TEXT CHECK (${json("settings", 1_048_576)}),
  order_key TEXT CHECK (${text("order_key", 1_024)}),
  slowed_until_ms INTEGER CHECK (slowed_until_ms ${TIME}),
  failing_since_ms INTEGER CHECK (failing_since_ms ${TIME}),
  last_failure_ms INTEGER CHECK (last_failure_ms ${TIME}),
  failing_total_ms INTEGER NOT NULL DEFAULT 0 CHECK (failing_total_ms ${SPAN}),
  last_claim_ms INTEGER CHECK (last_claim_ms ${TIME}),
  created_ms INTEGER NOT NULL CHECK (created_ms ${TIME}),
  deleted_ms INTEGER CHECK (deleted_ms ${TIME})
) STRICT;
CREATE UNIQUE INDEX subscription_living ON subscription (application, subscription, action)
  WHERE deleted_ms IS NULL;
CREATE INDEX subscription_action ON subscription (action) WHERE deleted_ms IS NULL;

-- Every action whose events a subscription ever received, to find the deliveries of an action. receives: whether the
-- subscription, which was not deleted, gets the action's events now.
CREATE TABLE binding (
  action_id INTEGER NOT NULL REFERENCES action (rowid),
  subscription_id INTEGER NOT NULL REFERENCES subscription (rowid),
  receives INTEGER NOT NULL DEFAULT 0 CHECK (receives IN (0, 1)),
  PRIMARY KEY (action_id, subscription_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX binding_receiving ON binding (action_id, subscription_id) WHERE receives = 1;
CREATE INDEX binding_subscription ON binding (subscription_id) WHERE receives = 1;

-- Texts that may be encrypted, see secret-cipher.ts. A deleted subscription has no row here.
CREATE TABLE subscription_secret (
  subscription_id INTEGER PRIMARY KEY REFERENCES subscription (rowid),
  secret TEXT NOT NULL CHECK (${secret("secret")}),
  previous_secret TEXT CHECK (${secret("previous_secret")}),
  previous_until_ms INTEGER CHECK (previous_until_ms ${TIME}),
  bearer TEXT NOT NULL CHECK (bearer IN ('secret', 'own', 'none')),
  bearer_token TEXT CHECK (${secret("bearer_token")}),
  CHECK ((previous_secret IS NULL) = (previous_until_ms IS NULL)),
  CHECK ((bearer = 'own') = (bearer_token IS NOT NULL))
) STRICT;
CREATE INDEX subscription_secret_overlap ON subscription_secret (previous_until_ms)
  WHERE previous_until_ms IS NOT NULL;
-- Holds one row where secrets are encrypted: a known text under the same key, which tells the right key.
CREATE TABLE encryption (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  proof TEXT NOT NULL CHECK (${text("proof", 1_024)})
) STRICT;

-- state: see queue/delivery-state.ts. One that is pending is to be sent at due_ms, or is being sent now (see lease). Held and
-- cancelled follow from the subscription, so pausing and deleting cost one row. attempt: the last one that ended.
-- key is that of the event, as its subscription orders it or did; see queue/key-order.ts.
-- A first attempt that delivered, and of which nothing else is to be said, has no row in attempt, which would be as large as
-- its delivery's. first_start_ms is after created_ms, and below 0 where the clock was set back in between.
CREATE TABLE delivery (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid ${ID}),
  event_id INTEGER NOT NULL REFERENCES event (rowid),
  subscription_id INTEGER NOT NULL REFERENCES subscription (rowid),
  state INTEGER NOT NULL DEFAULT ${DELIVERY_STATE.pending} CHECK (state IN (${Object.values(DELIVERY_STATE).join(", ")})),
  attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt ${COUNT}),
  failures INTEGER NOT NULL DEFAULT 0 CHECK (failures ${COUNT}),
  created_ms INTEGER NOT NULL CHECK (created_ms ${TIME}),
  due_ms INTEGER CHECK (due_ms ${TIME}),
  finished_ms INTEGER CHECK (finished_ms ${TIME}),
  last_error TEXT CHECK (octet_length(last_error) <= 1024),
  key INTEGER CHECK (key ${COUNT}),
  first_start_ms INTEGER CHECK (first_start_ms BETWEEN ${-MAX_INTEGER} AND ${MAX_INTEGER}),
  first_duration_ms INTEGER CHECK (first_duration_ms ${SPAN}),
  first_status_code INTEGER CHECK (first_status_code ${STATUS_CODE}),
  CHECK ((state = ${DELIVERY_STATE.pending}) = (due_ms IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX delivery_event ON delivery (event_id, subscription_id);
CREATE INDEX delivery_subscription ON delivery (subscription_id);
CREATE INDEX delivery_due ON delivery (subscription_id, due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX delivery_key ON delivery (subscription_id, key, state, event_id)
  WHERE key IS NOT NULL AND state IN (0, 5);
CREATE INDEX delivery_failed ON delivery (state) WHERE state = 3;
CREATE INDEX delivery_filtered ON delivery (state) WHERE state = 4;
-- What has failed for good, and what has failed so far, of one subscription, by its events.
CREATE INDEX delivery_failed_event ON delivery (subscription_id, event_id, state) WHERE state = 3;
CREATE INDEX delivery_waiting_event ON delivery (subscription_id, event_id, failures) WHERE failures > 0 AND due_ms IS NOT NULL;

-- The deliveries under way: a few pages. Claiming one and releasing it do not change the delivery itself. consumer: who took a
-- delivery of a pull subscription.
CREATE TABLE lease (
  delivery_id INTEGER PRIMARY KEY REFERENCES delivery (rowid),
  claim_id INTEGER NOT NULL CHECK (claim_id ${ID}),
  claimed_ms INTEGER NOT NULL CHECK (claimed_ms ${TIME}),
  until_ms INTEGER NOT NULL CHECK (until_ms ${TIME}),
  consumer TEXT CHECK (${label("consumer")})
) STRICT;
-- dns_ms, connect_ms and first_byte_ms are there where a connection was made for the attempt.
CREATE TABLE attempt (
  delivery_id INTEGER NOT NULL REFERENCES delivery (rowid),
  attempt INTEGER NOT NULL CHECK (attempt ${ID}),
  started_ms INTEGER NOT NULL CHECK (started_ms ${TIME}),
  duration_ms INTEGER NOT NULL CHECK (duration_ms ${SPAN}),
  dns_ms INTEGER CHECK (dns_ms ${SPAN}),
  connect_ms INTEGER CHECK (connect_ms ${SPAN}),
  first_byte_ms INTEGER CHECK (first_byte_ms ${SPAN}),
  outcome TEXT NOT NULL CHECK (outcome IN ('delivered', 'failed', 'returned')),
  status_code INTEGER CHECK (status_code ${STATUS_CODE}),
  error_code TEXT CHECK (octet_length(error_code) <= 64 AND error_code NOT GLOB '*[^a-z_]*'),
  consumer TEXT CHECK (${label("consumer")}),
  response BLOB CHECK (octet_length(response) <= ${MAX_RESPONSE_BYTES}),
  PRIMARY KEY (delivery_id, attempt)
) STRICT, WITHOUT ROWID;

-- ranges: the rowids of events that are still to be gone through, [[low, high], …]; its step takes them off the front in the
-- transaction that makes their deliveries due.
CREATE TABLE replay (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid ${ID}),
  subscription_id INTEGER NOT NULL REFERENCES subscription (rowid),
  action TEXT NOT NULL CHECK (${actionPattern("action")}),
  selection TEXT NOT NULL CHECK (selection IN ('failed', 'waiting', 'missed', 'all')),
  from_ms INTEGER NOT NULL CHECK (from_ms ${TIME}),
  to_ms INTEGER NOT NULL CHECK (to_ms ${TIME}),
  ranges TEXT NOT NULL CHECK (${json("ranges", 16_777_216)}),
  status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'cancelled', 'failed')),
  reason TEXT CHECK (${text("reason", 4_096)}),
  total INTEGER CHECK (total ${COUNT}),
  queued INTEGER NOT NULL DEFAULT 0 CHECK (queued ${COUNT}),
  created_ms INTEGER NOT NULL CHECK (created_ms ${TIME}),
  finished_ms INTEGER CHECK (finished_ms ${TIME})
) STRICT;
CREATE UNIQUE INDEX replay_running ON replay (subscription_id) WHERE status = 'running';

CREATE TABLE token (
  rowid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (rowid ${ID}),
  name TEXT NOT NULL CHECK (${label("name")}),
  scopes TEXT NOT NULL CHECK (${json("scopes", 1_048_576)}),
  hash TEXT NOT NULL UNIQUE CHECK (octet_length(hash) <= 128),
  expires_ms INTEGER CHECK (expires_ms ${TIME}),
  last_used_ms INTEGER CHECK (last_used_ms ${TIME}),
  created_ms INTEGER NOT NULL CHECK (created_ms ${TIME})
) STRICT;

-- See history/audit.ts. members: JSON, NULL where there are none.
CREATE TABLE audit (
  rowid INTEGER PRIMARY KEY CHECK (rowid ${ID}),
  changed_ms INTEGER NOT NULL CHECK (changed_ms ${TIME}),
  change TEXT NOT NULL CHECK (octet_length(change) <= 64 AND change NOT GLOB '*[^a-z_.]*'),
  record_id INTEGER CHECK (record_id ${COUNT}),
  name TEXT NOT NULL CHECK (${text("name", 16_384)}),
  by_name TEXT NOT NULL CHECK (${text("by_name", 1_024)}),
  token_id INTEGER CHECK (token_id ${COUNT}),
  address TEXT CHECK (${text("address", 1_024)}),
  members TEXT CHECK (${json("members", 1_048_576)})
) STRICT;
CREATE INDEX audit_changed ON audit (changed_ms);

-- See history/stats.ts. How often something happened in a span of time (ten seconds, five minutes, an hour) that begins at start_ms:
-- to events of an action or, with a subscription, to its deliveries; both are 0 for everything. measure: see
-- domain/stats/tally.ts. In the order of time, as all of a time are written together, and removed.
CREATE TABLE figure (
  span_ms INTEGER NOT NULL CHECK (span_ms ${ID}),
  start_ms INTEGER NOT NULL CHECK (start_ms ${TIME}),
  action_id INTEGER NOT NULL CHECK (action_id ${COUNT}),
  subscription_id INTEGER NOT NULL CHECK (subscription_id ${COUNT}),
  measure INTEGER NOT NULL CHECK (measure ${COUNT}),
  count INTEGER NOT NULL CHECK (count ${COUNT}),
  last_error TEXT CHECK (octet_length(last_error) <= 1024),
  PRIMARY KEY (span_ms, start_ms, action_id, subscription_id, measure)
) STRICT, WITHOUT ROWID;

-- Which data it is; see id-reservation.ts.
CREATE TABLE data_identity (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL CHECK (${hex("id", 32)})
) STRICT;
-- Rewritten to check whether the disk takes writes again.
CREATE TABLE write_check (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  filler BLOB NOT NULL
) STRICT;
`;

/** The statements that make all tables and indexes, one by one, in the words of the embedded engine. */
export const TABLES = SCHEMA.replaceAll(/^--.*\n/gm, "")
  .split(";\n")
  .map((statement) => statement.trim())
  .filter((statement) => statement !== "");
