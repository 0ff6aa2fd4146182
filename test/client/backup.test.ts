import { createHash } from "node:crypto";
import type { RequestListener } from "node:http";
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

function headersOf(content: Uint8Array, length = content.length): Record<string, string | number> {
  const digest = createHash("sha256").update(content).digest("base64");
  return { "content-length": length, "repr-digest": `sha-256=:${digest}:` };
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

  test("is refused when it was truncated", async () => {
    const evreg = await answering((_, response) => {
      response.writeHead(200, headersOf(CONTENT));
      response.write(CONTENT.subarray(0, 100_000), () => response.destroy());
    });
    expect(await refused(evreg)).toMatch(/did not arrive whole, so there is none: .* of 300000 bytes/);
  });

  test("is refused when a byte of it changed on the way", async () => {
    const changed = Buffer.from(CONTENT);
    changed[200_000] = 0;
    const evreg = await answering((_, response) => {
      response.writeHead(200, headersOf(CONTENT)).end(changed);
    });
    expect(await refused(evreg)).toContain("its digest is not the one that the server named");
  });

  test.each<[string, Record<string, string | number>]>([
    ["without a digest", { "content-length": CONTENT.length }],
    ["without a length", { "repr-digest": String(headersOf(CONTENT)["repr-digest"]) }],
  ])("is not accepted %s", async (_, headers) => {
    const evreg = await answering((__, response) => {
      response.writeHead(200, headers).end(CONTENT);
    });
    expect(await refused(evreg)).toContain("Is the address that of an evreg server?");
  });
});
