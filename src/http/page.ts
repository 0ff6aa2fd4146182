import { readdir, readFile } from "node:fs/promises";
import { getAssetKeys, getRawAsset, isSea } from "node:sea";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { EvregError } from "../domain/error.ts";
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

let reading: Promise<PageFiles> | undefined;

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

/** One file of the page that browsers load. */
interface PageFile {
  readonly bytes: Uint8Array;
  readonly gzipped: Uint8Array;
}

/** By their names, all of them small. */
type PageFiles = ReadonlyMap<string, PageFile>;

/** The executable has the files as assets, packed with gzip, under names that begin so. */
const ASSET_PREFIX = "ui/";

const packed = promisify(gzip);
const unpacked = promisify(gunzip);

/** @throws EvregError `not_found` where this program was built without them */
async function readPageFiles(): Promise<PageFiles> {
  const files = isSea() ? await filesInside() : await filesIn(folderOfPage());
  if (!files.has("index.html")) {
    throw new EvregError("not_found", "This evreg was built without its page; npm run build makes it.");
  }
  return files;
}

/** The build puts this module into a folder beside that of the page. */
function folderOfPage(): URL {
  const isSource = import.meta.url.endsWith(".ts");
  return new URL(isSource ? "../../dist/ui/" : "../ui/", import.meta.url);
}

async function filesInside(): Promise<PageFiles> {
  const keys = getAssetKeys().filter((key) => key.startsWith(ASSET_PREFIX));
  const files = keys.map(async (key): Promise<[string, PageFile]> => {
    const gzipped = new Uint8Array(getRawAsset(key));
    return [key.slice(ASSET_PREFIX.length), { bytes: await unpacked(gzipped), gzipped }];
  });
  return new Map(await Promise.all(files));
}

async function filesIn(folder: URL): Promise<PageFiles> {
  const names = await readdir(folder).catch((): string[] => []);
  const files = names.map(async (name): Promise<[string, PageFile]> => {
    const bytes = await readFile(new URL(name, folder));
    return [name, { bytes, gzipped: await packed(bytes, { level: 9 }) }];
  });
  return new Map(await Promise.all(files));
}
