import type { Deprecation } from "../domain/action.ts";
import type { Received } from "./channel.ts";

/** A date as structured fields write it (RFC 9651): seconds since the epoch. */
const DATE = /^@(\d{1,11})$/;
const SUCCESSOR = /<(?:[^>]*\/)?actions\/([^/>]+)>; *rel="?successor-version"?/;

/** What the headers of an answer say of the action that was published to. */
export function deprecationIn({ headers }: Received, action: string): Deprecation | undefined {
  const seconds = DATE.exec(headerText(headers["deprecation"]))?.[1];
  if (seconds === undefined) return undefined;
  const successor = SUCCESSOR.exec(headerText(headers["link"]))?.[1] ?? null;
  return { action, since: new Date(Number(seconds) * 1_000).toISOString(), successor };
}

function headerText(header: string | string[] | undefined): string {
  return [header ?? ""].flat().join(", ");
}
