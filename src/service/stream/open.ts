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
  const reach = access.readable();
  const { topics = ["events"], ...filters } = query;
  const checked = checkQuery(STREAM_QUERY, { ...filters, topics: [...topics].join(",") });
  const { application } = filters;
  const { action, subscription, status, payloads = false, since } = filters;
  let applications = reach;
  if (application !== undefined) {
    applications = reach === undefined || reach.includes(application) ? [application] : [];
  }
  const view = omitUndefined<View>({
    topics: new Set(checkTopics(checked.topics.split(","))),
    action,
    applications,
    subscription,
    status,
    payloads,
  });
  const stream = await feed.open(view, since);
  if (signal?.aborted === true) await stream.close();
  signal?.addEventListener("abort", () => void stream.close(), { once: true });
  return stream;
}
