import { EvregError } from "../../domain/error.ts";
import type { Sql } from "../sql/sql.ts";
import type { MoveSource, MoveTarget } from "./pass.ts";

// A move needs two places of data, one of each engine. What each can do is the same.

export interface OpenSource extends MoveSource {
  readonly dataId: string;
  /** Whether nobody serves the data while this is open, so that the move can come to its end. */
  readonly isAtRest: boolean;
  /** The name under which the data are kept that were moved away before; they are only to complete that move. */
  readonly kept?: string | undefined;
  /**
   * Has servers find no data here any more. Answers under which name they are kept.
   * @param where they are then, which a database remembers for its messages
   */
  leave(where: string): Promise<string>;
}

/** Where data are moved to, while it is open. Servers do not find them there before they have arrived. */
export interface OpenTarget extends MoveTarget {
  /** Has servers find them. */
  arrive(): Promise<void>;
  close(): Promise<void>;
}

/** What a target has to know of the source. */
export type SourceFacts = Pick<OpenSource, "dataId" | "kept">;

export interface MovePlace {
  /**
   * Opens the data that are here for `act`. Once it has resolved, what `leave` did is durable.
   * @throws EvregError `not_found` without data; `conflict` while a server has them and lets nobody read beside it; `usage` for
   * data of another form
   */
  from<T>(act: (source: OpenSource) => Promise<T>): Promise<T>;
  /**
   * Opens the data that are to become those of the source, which may have been begun.
   * @throws EvregError `conflict` where there are data already, or those of another move
   */
  to(source: SourceFacts): Promise<OpenTarget>;
}

/**
 * Refuses to move once more what was moved away before, where this is not the end of that move: others may have gone on with it.
 * @throws EvregError `conflict`
 */
export function mustBeBegun(isBegun: boolean, { kept }: SourceFacts, where: string): void {
  if (isBegun || kept === undefined) return;
  const message = `The data were moved away already and are kept as ${kept}, and no move of them into ${where} is left to be finished. Use them where they are now, or move them on from there.`;
  throw new EvregError("conflict", message);
}

/**
 * Gives data that are only begun their identity.
 * @param advice what to do where these are other data
 * @throws EvregError `conflict` where they are
 */
export async function identify(sql: Sql, dataId: string, where: string, advice: string): Promise<void> {
  // The actions are moved first, and there are always some.
  await sql.run(
    `INSERT INTO data_identity (one, id) VALUES (1, ?)
      ON CONFLICT (one) DO UPDATE SET id = excluded.id WHERE NOT EXISTS (SELECT 1 FROM action)`,
    dataId,
  );
  if ((await sql.value<string>("SELECT id FROM data_identity")) === dataId) return;
  const message = `In ${where} a move of other data was begun. To give that one up, ${advice}; or name another place with --to.`;
  throw new EvregError("conflict", message);
}
