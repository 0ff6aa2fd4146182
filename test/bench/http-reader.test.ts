import { describe, expect, it } from "vitest";
import { HttpReader } from "./http-reader.ts";

const STREAM = Buffer.from(
  'HTTP/1.1 201 Created\r\nContent-Length: 11\r\nX-A: 1\r\n\r\n{"a":"é"}\n' +
    "HTTP/1.1 204 No Content\r\nX-B: 2\r\n\r\n" +
    "HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n" +
    "HTTP/1.1 200 OK\r\nX-Content-Length: 99\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
);

function readIn(chunks: readonly Buffer[], keeps: boolean): unknown[] {
  const messages: unknown[] = [];
  const reader = new HttpReader({
    keepsBody: () => keeps,
    onMessage: (head, body) => messages.push([head.split("\r\n")[0], body?.toString()]),
  });
  for (const chunk of chunks) reader.push(chunk);
  return messages;
}

function inPieces(bytes: number): Buffer[] {
  return Array.from({ length: Math.ceil(STREAM.length / bytes) }, (_, place) =>
    STREAM.subarray(place * bytes, (place + 1) * bytes),
  );
}

describe("HttpReader", () => {
  it.each([1, 2, 3, 7, 50, 1_000])("finds every message in pieces of %d bytes", (bytes) => {
    expect(readIn(inPieces(bytes), true)).toEqual([
      ["HTTP/1.1 201 Created", '{"a":"é"}\n'],
      ["HTTP/1.1 204 No Content", ""],
      ["HTTP/1.1 200 OK", ""],
      ["HTTP/1.1 200 OK", "\r\n\r\n"],
    ]);
  });

  it("skips bodies that are not wanted", () => {
    expect(readIn(inPieces(5), false)).toEqual([
      ["HTTP/1.1 201 Created", undefined],
      ["HTTP/1.1 204 No Content", undefined],
      ["HTTP/1.1 200 OK", undefined],
      ["HTTP/1.1 200 OK", undefined],
    ]);
  });

  it("reports no message before it is complete", () => {
    expect(readIn([STREAM.subarray(0, 60)], true)).toEqual([]);
  });

  it("refuses a body without a length", () => {
    const chunked = Buffer.from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    expect(() => readIn([chunked], true)).toThrow("without Content-Length");
  });
});
