import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvregError } from "../domain/error.ts";
import {
  isOurs,
  makeFolder,
  othersMayWrite,
  readOwned,
  replaceFile,
  syncFolderOf,
} from "../runtime/files.ts";
import { nearest } from "../domain/words/nearest.ts";
import { isServerUrl } from "./value-kinds.ts";

/** A server under a name of the user's own, with the token for it. */
export interface Context {
  readonly name: string;
  readonly url: string;
  readonly token?: string;
  /** Lets the token go over `http:` to another machine. */
  readonly allowInsecureToken?: boolean;
}

/** The name of a context is also a file's, on systems where upper and lower case are the same. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const EXTENSION = ".json";
const MAX_BYTES = 64 * 1024;

/**
 * The contexts of this user: a file each, so that two commands at a time do not undo each other's changes, and one with the
 * name of the context in use. They say where tokens go and hold some, so nobody else may read or write them.
 * Every method throws `usage` for files that cannot be trusted or read.
 */
export class Contexts {
  readonly #folder: string;
  readonly #inUse: string;

  /** @param configFolder that of this user's settings for evreg; made by the first `save` */
  constructor(configFolder: string) {
    this.#folder = join(configFolder, "contexts");
    this.#inUse = join(configFolder, "context-in-use");
  }

  /** Lists the contexts by name. */
  names(): string[] {
    const files = orNone(() => readdirSync(this.#folder)) ?? [];
    const names = files.filter((file) => file.endsWith(EXTENSION)).map((file) => basename(file, EXTENSION));
    return names.filter((name) => NAME.test(name)).toSorted();
  }

  has(name: string): boolean {
    return this.names().includes(name);
  }

  /** `not_found`. */
  get(name: string): Context {
    const text = NAME.test(name) ? readPrivate(this.#fileOf(name)) : undefined;
    if (text === undefined) throw this.#notFound(name);
    return { name, ...parse(text, this.#fileOf(name)) };
  }

  /** The name of the one that commands act on by default. */
  inUse(): string | undefined {
    return readPrivate(this.#inUse)?.trim() || undefined;
  }

  /** `usage` for a name that cannot be one. */
  save({ name, ...context }: Context): void {
    checkName(name);
    this.#write(this.#fileOf(name), `${JSON.stringify(context, null, 2)}\n`);
  }

  /** `not_found`. */
  use(name: string): void {
    this.get(name);
    this.#write(this.#inUse, `${name}\n`);
  }

  /** No context is in use from then on. */
  useNone(): void {
    remove(this.#inUse);
  }

  /** `not_found`. One that is in use is in use no longer. */
  remove(name: string): void {
    if (!this.has(name)) throw this.#notFound(name);
    if (this.inUse() === name) this.useNone();
    remove(this.#fileOf(name));
  }

  #fileOf(name: string): string {
    return join(this.#folder, `${name}${EXTENSION}`);
  }

  #write(path: string, text: string): void {
    changing(path, () => {
      makeFolder(this.#folder);
      checkFolder(dirname(path));
      replaceFile(path, () => text, { durable: true });
    });
  }

  #notFound(name: string): EvregError {
    const names = this.names();
    const meant = nearest(name, names);
    let hint = meant === undefined ? `there are: ${names.join(", ")}.` : `did you mean ${meant}?`;
    if (names.length === 0) hint = "there are none yet; add it: evreg context add NAME --url URL";
    return new EvregError("not_found", `There is no context ${JSON.stringify(name)}; ${hint}`, { name });
  }
}

/** A token that was in it does not come back after a power cut. */
function remove(path: string): void {
  if (!existsSync(path)) return;
  changing(path, () => {
    rmSync(path, { force: true });
    syncFolderOf(path);
  });
}

function changing(path: string, change: () => void): void {
  try {
    change();
  } catch (error) {
    if (error instanceof EvregError) throw error;
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    const message = `${path} could not be changed (${why}). EVREG_CONFIG_DIR names another folder for what evreg keeps for you.`;
    throw new EvregError("unavailable", message, {}, { cause: error });
  }
}

/** @throws `usage` */
export function checkName(name: string): void {
  if (NAME.test(name)) return;
  throw new EvregError(
    "usage",
    `The name of a context has 1 to 64 lower-case letters, digits and . _ -, and begins with a letter or digit; not ${JSON.stringify(name)}.`,
  );
}

/** `undefined` when there is no such file, or no way to it for this user. */
function readPrivate(path: string): string | undefined {
  const owned = orNone(() => {
    checkFolder(dirname(path));
    return readOwned(path, MAX_BYTES);
  });
  if (owned === undefined) return undefined;
  if (!isOurs(owned)) throw untrusted(path, `it belongs to another user (${owned.uid}). Remove it`);
  if (process.platform !== "win32" && (owned.mode & 0o077) !== 0) {
    throw untrusted(path, `other users may read or change it. Run: chmod 600 ${path}`);
  }
  return owned.text;
}

function checkFolder(folder: string): void {
  const stats = statSync(folder);
  if (!isOurs(stats)) throw untrusted(folder, `it belongs to another user (${stats.uid})`);
  if (othersMayWrite(stats)) throw untrusted(folder, `other users may write to it. Run: chmod 700 ${folder}`);
}

function untrusted(path: string, why: string): EvregError {
  return new EvregError("usage", `${path} says where evreg's commands act, but cannot be trusted: ${why}.`);
}

function orNone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof EvregError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    // An account without a home, or with another's.
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return undefined;
    throw new EvregError("usage", `A context cannot be read: ${(error as Error).message}.`);
  }
}

function parse(text: string, path: string): Omit<Context, "name"> {
  try {
    const { url, token, allowInsecureToken } = Object(JSON.parse(text)) as Readonly<Record<string, unknown>>;
    if (isServerUrl(url) && (token === undefined || typeof token === "string")) {
      const allowed = allowInsecureToken === true ? { allowInsecureToken } : {};
      return { url, ...(token === undefined ? {} : { token }), ...allowed };
    }
  } catch {
    // No JSON: it is none of evreg's.
  }
  const remedy = "Remove it, and add it again with evreg context add.";
  throw new EvregError("usage", `${path} does not hold a context. ${remedy}`);
}
