import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { rawMessages } from "../../src/client/stream.ts";
import { encodeMessages } from "../../src/http/live-streams.ts";
import { RawJson } from "../../src/json/raw-json.ts";

async function parsed(pieces: readonly (string | Uint8Array)[]): Promise<readonly unknown[]> {
  const messages: unknown[] = [];
  for await (const batch of rawMessages(Readable.from(pieces.map((piece) => Buffer.from(piece)))))
    messages.push(...batch.map(({ type, id, data }) => [type, id, data]));
  return messages;
}

const STREAM = [
  "\n: a comment\nid: 1\nevent: event\ndata: a\ndata:b\ndata:  c\n\n",
  "data\n\n",
  "id: 2\n\n",
  "retry: 5\nunknown\n\nevent: x\ndata: \u{1f600}\u2028\n\nid: 3\ndata: cut off\n",
].join("");
const MESSAGES = [
  ["event", "1", "a\nb\n c"],
  ["message", "1", ""],
  ["message", "2", ""],
  ["x", "2", "\u{1f600}\u2028"],
];

test("a stream is taken apart by lines, wherever its pieces begin", async () => {
  expect(await parsed([STREAM])).toEqual(MESSAGES);
  const bytes = Buffer.from(STREAM);
  for (let at = 0; at <= bytes.length; at += 1) {
    expect(await parsed([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(MESSAGES);
  }
  expect(await parsed([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(MESSAGES);
});

test("a message that never ends is not collected for ever", async () => {
  const piece = Buffer.alloc(1024 * 1024, "x");
  await expect(parsed(Array<Buffer>(65).fill(piece))).rejects.toThrow(RangeError);
});

test("a payload with line breaks is written in small pieces, as lines that join to the same bytes", async () => {
  const event = { rowid: 1, action: "a", application: "b", revision: 1, timestamped: "t" };
  const texts = [
    '{\n"a":1}',
    '{"a":\n\n  1 }',
    "{ }",
    `{${"\n".repeat(200_000)}}`,
    `{"a":"${"é".repeat(100_000)}"}`,
    `{${"\r \n\r\n".repeat(30_000)}}`,
  ];
  for (const text of texts) {
    const payload = RawJson.fromText(text);
    const pieces = [...encodeMessages([{ type: "event", id: "x_1", data: { ...event, payload } }])];
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(64 * 1024);
    const [[, , data] = []] = (await parsed(pieces)) as [string, string, string][];
    const lines = text.replaceAll("\r", "\n");
    expect(data!.includes(`"payload":${lines}`)).toBe(true);
    const base64 = Buffer.from(text).toString("base64");
    expect(data!.includes(`,"payload_base64":"${base64}"}`)).toBe(text.includes("\r"));
  }
});
