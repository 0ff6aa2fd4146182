import { EvregError } from "../domain/error.ts";
import { type PageFile, readPageFiles } from "../runtime/page-files.ts";
import type { ApiRequest } from "./request.ts";
import { type HeaderPair, PAGE_PATH, type Reply } from "./response.ts";

// The page at `/ui/`: a few files that hold no data, so that nobody needs a token for them. Everything it shows it asks of
// the API, with the token of whoever looks at it. All addresses are relative: it works under any prefix of a proxy.

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

const INDEX = "index.html";

/** A name that has a hash of what is in the file. */
const HASHED = /-[A-Z0-9]{8}\.\w+$/;

let reading: ReturnType<typeof readPageFiles> | undefined;

/** The page and its files, which are read at the first request, and again after that has failed. */
export async function replyWithPage(request: ApiRequest): Promise<Reply> {
  if (request.path === PAGE_PATH) return seeOther("ui/");
  const name = request.path === `${PAGE_PATH}/` ? INDEX : request.param("file");
  reading ??= readPageFiles().catch((error: unknown) => {
    reading = undefined;
    throw error;
  });
  const file = (await reading).get(name);
  if (file === undefined) {
    throw new EvregError("not_found", `The page has no file ${JSON.stringify(name.slice(0, 100))}.`);
  }
  return replyWith(name, file, request);
}

/** @param location relative to the address that was asked for */
export function seeOther(location: string): Reply {
  const headers = { location, vary: "accept" };
  return { status: 303, body: "", mediaType: "text/plain", headers: Object.entries(headers) };
}

function replyWith(name: string, { bytes, gzipped }: PageFile, request: ApiRequest): Reply {
  const isGzipped = request.header("accept-encoding")?.toLowerCase().includes("gzip") === true;
  const encoding: readonly HeaderPair[] = isGzipped ? [["content-encoding", "gzip"]] : [];
  return {
    status: 200,
    body: [isGzipped ? gzipped : bytes],
    mediaType: MEDIA_TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    cacheControl: HASHED.test(name) ? "public, max-age=31536000, immutable" : "no-cache",
    headers: [["vary", "accept-encoding"], ...encoding],
  };
}

/** Whether a caller takes a page: a browser that was given the address alone. */
export function takesHtml(accepted = ""): boolean {
  return accepted.includes("text/html");
}
