import { readdir, readFile } from "node:fs/promises";
import { getAssetKeys, getRawAsset, isSea } from "node:sea";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { EvregError } from "../domain/error.ts";

/** One file of the page that browsers load. */
export interface PageFile {
  readonly bytes: Uint8Array;
  readonly gzipped: Uint8Array;
}

/** The executable has the files as assets, packed with gzip, under names that begin so. */
const ASSET_PREFIX = "ui/";

const packed = promisify(gzip);
const unpacked = promisify(gunzip);

/**
 * The files of the page by their names, all of them small.
 * @throws EvregError `not_found` where this program was built without them
 */
export async function readPageFiles(): Promise<ReadonlyMap<string, PageFile>> {
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

async function filesInside(): Promise<ReadonlyMap<string, PageFile>> {
  const keys = getAssetKeys().filter((key) => key.startsWith(ASSET_PREFIX));
  const files = keys.map(async (key): Promise<[string, PageFile]> => {
    const gzipped = new Uint8Array(getRawAsset(key));
    return [key.slice(ASSET_PREFIX.length), { bytes: await unpacked(gzipped), gzipped }];
  });
  return new Map(await Promise.all(files));
}

async function filesIn(folder: URL): Promise<ReadonlyMap<string, PageFile>> {
  const names = await readdir(folder).catch((): string[] => []);
  const files = names.map(async (name): Promise<[string, PageFile]> => {
    const bytes = await readFile(new URL(name, folder));
    return [name, { bytes, gzipped: await packed(bytes, { level: 9 }) }];
  });
  return new Map(await Promise.all(files));
}
