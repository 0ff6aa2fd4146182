import { createHash } from "node:crypto";
import type { RequestListener, ServerResponse } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { Evreg } from "../../src/evreg.ts";
import { otherServer } from "../support/other-server.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A server that answers like this, and a client to it. */
async function answering(listener: RequestListener): Promise<Evreg> {
  const { url, close } = await otherServer(listener);
  const evreg = connect({ url });
  closing.push(close, () => evreg.close());
  return evreg;
}

const CONTENT = Buffer.alloc(300_000, "evreg");

function headersOf(content: Uint8Array) {
  const digest = createHash("sha256").update(content).digest("base64");
  return { "content-length": content.length, "repr-digest": `sha-256=:${digest}:` };
}

async function read(evreg: Evreg): Promise<number> {
  const backup = await evreg.backup();
  try {
    let bytes = 0;
    for await (const piece of backup.content()) bytes += piece.length;
    return bytes;
  } finally {
    await backup.close();
  }
}

async function refused(evreg: Evreg): Promise<string> {
  const error: unknown = await read(evreg).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(EvregError);
  expect(error).toMatchObject({ code: "unreachable" });
  return (error as EvregError).message;
}

describe("a backup over HTTP", () => {
  test("is accepted when it arrives whole", async () => {
    const evreg = await answering((_, response) => {
      response.writeHead(200, headersOf(CONTENT)).end(CONTENT);
    });
    expect(await read(evreg)).toBe(CONTENT.length);
  });

  test.each<[string, RegExp, (response: ServerResponse) => unknown]>([
    [
      "was truncated",
      /did not arrive whole, so there is none: .* of 300000 bytes/,
      (response) =>
        response
          .writeHead(200, headersOf(CONTENT))
          .write(CONTENT.subarray(0, 100_000), () => response.destroy()),
    ],
    [
      "changed on the way",
      /its digest is not the one that the server named/,
      (response) =>
        response.writeHead(200, headersOf(CONTENT)).end(Buffer.from(CONTENT).fill(0, 200_000, 200_001)),
    ],
    [
      "has no digest",
      /Is the address that of an evreg server\?/,
      (response) => response.writeHead(200, { "content-length": CONTENT.length }).end(CONTENT),
    ],
    [
      "has no length",
      /Is the address that of an evreg server\?/,
      (response) =>
        response.writeHead(200, { "repr-digest": headersOf(CONTENT)["repr-digest"] }).end(CONTENT),
    ],
  ])("is refused when it %s", async (_, message, answer) => {
    expect(await refused(await answering((__, response) => void answer(response)))).toMatch(message);
  });
});
