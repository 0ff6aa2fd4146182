import { createHash } from "node:crypto";
import type { Backup } from "../domain/backup.ts";
import { EvregError } from "../domain/error.ts";
import type { Channel, Opened } from "./channel.ts";
import { foreignAnswer } from "./refusals.ts";

const DIGEST = /^sha-256=:([A-Za-z0-9+/]{43}=):$/;

/** A backup that the server makes, and that is read from it piece by piece; its content fails when it is not whole. */
export async function backupOver(channel: Channel, signal?: AbortSignal): Promise<Backup> {
  const ending = new AbortController();
  const signals = [ending.signal, ...(signal === undefined ? [] : [signal])];
  const opened = await channel.open("/v1/backup", AbortSignal.any(signals));
  const { headers, body } = opened;
  const bytes = Number(headers["content-length"]);
  const digest = DIGEST.exec(String(headers["repr-digest"]))?.[1];
  if (digest === undefined || !Number.isSafeInteger(bytes)) {
    body.on("error", () => undefined).destroy();
    throw foreignAnswer({ ...opened, bytes: new Uint8Array() });
  }
  const sha256 = Buffer.from(digest, "base64").toString("hex");
  return {
    bytes,
    sha256,
    content: () => checked(opened, { bytes, sha256 }),
    close() {
      // What was not read is not wanted; its stream says so as an error.
      body.on("error", () => undefined);
      ending.abort();
      body.destroy();
      return Promise.resolve();
    },
  };
}

async function* checked(
  { body, asked }: Opened,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  let received = 0;
  try {
    for await (const piece of body as AsyncIterable<Uint8Array>) {
      hash.update(piece);
      received += piece.length;
      yield piece;
    }
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") throw error;
    const why = `the connection broke after ${received} of ${bytes} bytes, as when the server is stopped`;
    throw torn(why, asked, error);
  }
  if (received !== bytes) throw torn(`${received} of ${bytes} bytes came`, asked);
  if (hash.digest("hex") !== sha256) throw torn("its digest is not the one that the server named", asked);
}

function torn(why: string, asked: string, cause?: unknown): EvregError {
  return new EvregError(
    "unreachable",
    `The backup did not arrive whole, so there is none: ${why}. Run it again once the server answers (${asked}).`,
    {},
    { cause },
  );
}
