import { randomUUID } from "node:crypto";

/** What proxies and tracers send: short, and nothing that could break a log line or a header. */
const WELL_FORMED = /^[\w.:+/=-]{1,128}$/;

/** The caller's own id when it is well-formed, else a new one. It is in the answer's headers and in every log line. */
export function requestIdOf(header: string | undefined): string {
  return header !== undefined && WELL_FORMED.test(header) ? header : randomUUID();
}
