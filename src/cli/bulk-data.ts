import { EvregError } from "../domain/error.ts";
import type { Evreg } from "../evreg.ts";
import type { PublishItems } from "./bulk-line.ts";
import { usage } from "./usage.ts";

/**
 * Which data a bulk publishes to.
 * @param target the address or the data folder, for a person
 * @throws EvregError `usage` for a server that does not tell; those of `whoami`
 */
export async function dataIdOf(evreg: Pick<Evreg, "whoami">, target: string): Promise<string> {
  const { data_id: id } = (await evreg.whoami()).data as { data_id?: string };
  if (id !== undefined) return id;
  throw usage(
    `--checkpoint: the server at ${target} does not tell which data it has, as one of an older evreg. Update that one, or leave --checkpoint out.`,
  );
}

/**
 * Publishes to this data only: a server that was away, or was not seen to be, may have other data since, where what the
 * checkpoint counts is not.
 * @throws EvregError also `usage` when it has
 */
export function onlyTo(dataId: string, publish: PublishItems): PublishItems {
  return (items, how) =>
    publish(items, { ...how, data_id: dataId }).catch((error: unknown) => {
      if (error instanceof EvregError && error.code === "conflict" && error.details["field"] === "data_id") {
        throw hasChanged();
      }
      throw error;
    });
}

function hasChanged(): EvregError {
  return usage(
    "The server has other data than before: another data folder, or the one from before a restore. Nothing more was published. The same command tells how to go on.",
  );
}
