import { askText, type Envelope } from "../api/request.ts";
import { memberText } from "./json-tokens.ts";

/** An event as it is shown. */
export interface ShownEvent {
  readonly rowid: number;
  readonly action: string;
  readonly revision: number;
  readonly timestamped: string;
  /** Byte for byte as it is stored. */
  readonly payload: string;
}

/** Reads an event without parsing its payload, for `useResource`. */
export async function readEvent(path: string, signal: AbortSignal): Promise<Envelope<ShownEvent>> {
  const data = memberText(await askText(path, { signal }), "data") ?? "{}";
  const payload = memberText(data, "payload") ?? "null";
  const numberOf = (name: string): number => Number(memberText(data, name));
  const textOf = (name: string): string => JSON.parse(memberText(data, name) ?? '""') as string;
  return {
    data: {
      rowid: numberOf("rowid"),
      action: textOf("action"),
      revision: numberOf("revision"),
      timestamped: textOf("timestamped"),
      payload,
    },
  };
}
