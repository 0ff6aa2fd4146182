import { hostname } from "node:os";
import type { Node } from "../../domain/operations.ts";
import { toIso } from "../../runtime/clock.ts";
import type { Owner } from "../../runtime/owner-file.ts";
import { type Shard, type ShardChanges, SHARDS, shareShards } from "../rules/shards.ts";
import type { Work } from "../sql/operation.ts";
import { releaseLeases } from "../sql/queue/leases.ts";
import { NEWEST_FORM, SCHEMA } from "./tables.ts";

// Who works on the database, and which shards each node has. All of it changes only in transactions that have their turn, but for
// the beats of `membership.ts`.

/** A node that has given no sign of life for so long is taken for dead. */
export const LEASE_SECONDS = 12;
/** Nodes that ended so long ago are forgotten. One that stood still for longer finds that its data are not there any more. */
const FORGOTTEN_AFTER = "7 days";
/** One that ended longer ago is of no interest any more. */
const LISTED_FOR = "1 day";

/**
 * One that has given none for so long, which is that of two beats and a half, is likely to be dead. It keeps what it has, and
 * nothing more is kept for it.
 */
const SILENT_SECONDS = 5;

export const LEASE_END = `clock_timestamp() + interval '${LEASE_SECONDS} seconds'`;

/** SQL that says whether a node takes its share of the subscriptions. */
export const IS_SERVING = `ended IS NULL AND serves = 1
  AND until > clock_timestamp() + interval '${LEASE_SECONDS - SILENT_SECONDS} seconds'`;

/** SQL that is true of a node whose lease holds. */
export const IS_LIVING = "ended IS NULL AND until > clock_timestamp()";

/** Has nodes whose lease is over take part no more, unless they begin anew. */
export const END_DEAD =
  "UPDATE node SET ended = clock_timestamp() WHERE ended IS NULL AND until < clock_timestamp()";

/** What a node runs by, of which all on one database should have the same: texts by their names. */
export type NodeSettings = Readonly<Record<string, string>>;

/** A node, as it says of itself. */
export interface NodeIdentity extends Owner {
  readonly version: string;
  /** What all nodes should have alike. */
  readonly settings: NodeSettings;
  /** Whether it delivers. A command does not. */
  readonly serves: boolean;
}

/** SQL of the names of settings that the nodes which run have different values of. */
export const DIFFERING = `SELECT s.key AS setting
  FROM ${SCHEMA}.node AS n CROSS JOIN jsonb_each_text(n.owner::jsonb -> 'settings') AS s
  WHERE serves = 1 AND ${IS_LIVING} GROUP BY s.key HAVING count(DISTINCT s.value) > 1 ORDER BY s.key`;

/** Lets a node take part. Its first transaction makes the row that all its later ones count in. */
export async function join(work: Work, { serves, ...owner }: NodeIdentity): Promise<string> {
  const text = JSON.stringify({ ...owner, host: hostname(), newest_form: NEWEST_FORM });
  await work.run(
    `INSERT INTO node (id, owner, serves, until, seen) VALUES (?, ?, ?, ${LEASE_END}, (SELECT version FROM turn))`,
    owner.instance,
    text,
    Number(serves),
  );
  await work.run("INSERT INTO writer (node, writes) VALUES (?, 0)", owner.instance);
  return await work.value("SELECT id FROM data_identity");
}

export interface Sharing {
  /** The nodes that were found dead, with the shards that each had. */
  readonly dead: readonly Node[];
  readonly shards: readonly number[];
  /** Whether it has got some, which it may have had before others took it for dead. */
  readonly hasTaken: boolean;
  /** Whether it has shards that it gives up once nothing of them is under way. */
  readonly isLeaving: boolean;
  /** How many deliveries were under way at nodes that are gone. */
  readonly released: number;
}

/**
 * Does a node's part in sharing the shards out: those of dead nodes become free, it leaves what it has too much, and takes what is
 * free. A node that was taken for dead and is not takes part again.
 */
export async function share(work: Work, node: string, nowMs: number): Promise<Sharing> {
  await work.run(`DELETE FROM node WHERE ended < clock_timestamp() - interval '${FORGOTTEN_AFTER}'`);
  await work.run("DELETE FROM writer WHERE node NOT IN (SELECT id FROM node)");
  await work.run(`UPDATE node SET until = ${LEASE_END}, ended = NULL WHERE id = ?`, node);
  const dead = (await work.rows<NodeRow>(`${END_DEAD} RETURNING ${LISTED}`)).map(nodeOf);
  let changes = await work.run(
    "UPDATE shard SET node = NULL, leaving = 0 WHERE node IN (SELECT id FROM node WHERE ended IS NOT NULL)",
  );
  changes += await work.run(
    `UPDATE shard SET node = NULL, leaving = 0 WHERE node = ? AND leaving = 1 AND id NOT IN (
      SELECT d.subscription_id % ${SHARDS} FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id WHERE l.consumer IS NULL)`,
    node,
  );
  const ids = await work.column<string>(`SELECT id FROM node WHERE ${IS_SERVING}`);
  const before = await loadShards(work);
  const { taken, leaving } = ids.includes(node) ? shareShards(ids, before, node) : NO_CHANGES;
  const give = "UPDATE shard SET node = ?2, leaving = ?3 WHERE id IN list(?1: id bigint)";
  if (taken.length > 0) changes += await work.run(give, taken, node, 0);
  if (leaving.length > 0) changes += await work.run(give, leaving, node, 1);
  if (changes > 0) await work.run("UPDATE turn SET epoch = epoch + 1");
  const anew = taken.filter((id) => before[id]!.node === null);
  const released = await releaseLeases(work, nowMs, anew);
  const own = (await loadShards(work)).filter((shard) => shard.node === node);
  const claimed = own.filter(({ isLeaving }) => !isLeaving).map(({ id }) => id);
  const isLeaving = claimed.length < own.length;
  return { dead, shards: claimed, hasTaken: taken.length > 0, isLeaving, released };
}

const NO_CHANGES: ShardChanges = { taken: [], leaving: [] };

/** All of them, each at its number. */
async function loadShards(work: Work): Promise<readonly Shard[]> {
  const rows = await work.rows<Pick<Shard, "id" | "node"> & { readonly leaving: number }>(
    "SELECT id, node, leaving FROM shard ORDER BY id",
  );
  return rows.map(({ id, node, leaving }): Shard => ({ id, node, isLeaving: leaving === 1 }));
}

/** So many broadcast changes are kept. All who receive them look ten times a second. */
const KEPT_CHANGES = 50_000;

export async function broadcast(work: Work, node: string, changes: readonly string[]): Promise<void> {
  await work.run(
    "INSERT INTO change (node, body) SELECT ?2, body FROM list(?1: body text) AS t",
    changes,
    node,
  );
  await work.run("DELETE FROM change WHERE id < (SELECT max(id) FROM change) - ?", KEPT_CHANGES);
}

/** @returns the change after which it receives all, once every node has seen the version */
export async function receive(work: Work, node: string, isWanted: boolean): Promise<number> {
  await work.run("UPDATE node SET receives = ?2 WHERE id = ?1", node, Number(isWanted));
  if (isWanted) await work.run("UPDATE turn SET version = version + 1");
  return await work.value("SELECT coalesce(max(id), 0) FROM change");
}

/** Gives everything up, so that others need not wait until the lease has ended. */
export async function leave(work: Work, node: string): Promise<void> {
  await work.run("UPDATE shard SET node = NULL, leaving = 0 WHERE node = ?", node);
  await work.run("DELETE FROM node WHERE id = ?", node);
  await work.run("DELETE FROM writer WHERE node = ?", node);
  await work.run("UPDATE turn SET epoch = epoch + 1");
}

interface NodeRow extends Pick<Node, "id" | "shards" | "leaving"> {
  /** JSON of its `NodeIdentity` and its host. */
  readonly owner: string;
  readonly serves: number;
  readonly isGone: number;
  readonly seenMs: number;
}

const LISTED = `id, owner, serves, NOT (${IS_LIVING}) AS isGone,
  (extract(epoch FROM until) * 1000)::bigint - ${LEASE_SECONDS * 1_000} AS seenMs,
  (SELECT count(*) FROM shard WHERE node = node.id) AS shards,
  (SELECT count(*) FROM shard WHERE node = node.id AND leaving = 1) AS leaving`;

export async function listNodes(work: Work): Promise<readonly Node[]> {
  const rows = await work.rows<NodeRow>(
    `SELECT ${LISTED} FROM node WHERE ended IS NULL OR ended > clock_timestamp() - interval '${LISTED_FOR}'`,
  );
  return rows.map(nodeOf).toSorted((one, other) => (one.started_at < other.started_at ? -1 : 1));
}

function nodeOf({ id, owner, serves, isGone, seenMs, shards, leaving }: NodeRow): Node {
  const { host, pid, version, started_at } = JSON.parse(owner) as NodeIdentity & Pick<Node, "host">;
  const status = isGone === 1 ? "gone" : serves === 1 ? "serving" : "visiting";
  return { id, host, pid, version, status, started_at, seen_at: toIso(seenMs), shards, leaving };
}
