import { STREAM_QUERY, type StreamQuery, type StreamTopic } from "../../domain/stream.ts";
import { routeAt, type Route } from "./route.ts";

/** What a message has in its field `event`, with what it has as its data. */
const MESSAGES = [
  "`event`: an event; with `payload` if payloads were asked for, and also `payload_base64` if it has carriage returns, which a stream cannot carry",
  "`delivery`: the result of an attempt, or a delivery that ended without one",
  "`subscription`, `action`, `replay`: `change` (`created`, `changed` or `deleted`) and the `record`",
  "`ready`: what happened before has all come",
  "`gap`: `reason` (`overrun`, `restart`, `expired` or `other_data`), `topics`, `missed` (at most so many; `null` if nobody knows) and `complete_since`",
];

export const STREAM_ROUTE: Route = routeAt(
  "GET /v1/stream",
  "stream",
  "Watch what happens, as server-sent events",
  {
    description: `Each message has an \`id\`. A client that connects again sends the last one as \`Last-Event-ID\`, which comes before \`since\`, and gets what it has missed. Events are read from the store and go on exactly, as long as they are kept. Other topics go on from the last 10,000 changes since the server started; where that is not enough, a \`gap\` says so. Each connection has its own pace, and is cut off once it has taken nothing for a minute. A comment comes every 15 seconds. The stream ends when its token does, and when the server stops. At most 200 streams are open at once, 100 of one token; the more others have, the fewer.\n\nMessages by their \`event\`:\n\n${MESSAGES.map((line) => `- ${line}.`).join("\n")}`,
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
  },
);
