import { EvregError } from "../../domain/error.ts";
import { checkActionPattern } from "../../domain/names.ts";
import { malformedField } from "../../domain/request.ts";
import { checkTopics, STREAM_QUERY, type StreamQuery } from "../../domain/stream.ts";
import type { ChangeStream, StreamOptions } from "../../evreg.ts";
import type { Access } from "../auth.ts";
import type { ServiceContext } from "../context.ts";
import { checkQuery, omitUndefined } from "../requests.ts";
import type { View } from "./view.ts";

/** A stream of what the principal may read. */
export async function openStream(
  { feed }: Pick<ServiceContext, "feed">,
  access: Access,
  query: StreamQuery = {},
  { signal }: StreamOptions = {},
): Promise<ChangeStream> {
  const applications = access.readable(query.application);
  const { topics = ["events"], ...filters } = query;
  const checked = checkQuery(STREAM_QUERY, { ...filters, topics: [...topics].join(",") });
  const { action, subscription, status, payloads = false, since } = filters;
  if (action !== undefined) checkPattern(action);
  const view = omitUndefined<View>({
    topics: new Set(checkTopics(checked.topics.split(","))),
    action,
    applications,
    subscription,
    status,
    payloads,
  });
  const stream = await feed.open(view, since, access.caller);
  if (signal?.aborted === true) await stream.close();
  signal?.addEventListener("abort", () => void stream.close(), { once: true });
  return stream;
}

/** A list of what cannot exist is empty; a stream of it would be silent for ever. */
function checkPattern(action: string): void {
  try {
    checkActionPattern("action", action);
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    throw malformedField("action", String(error.details["message"]), action);
  }
}
