import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Contexts } from "../../src/config/contexts.ts";
import { temporaryFolder } from "../support/program.ts";

let folder: ReturnType<typeof temporaryFolder>;
let config: string;
let contexts: Contexts;

beforeEach(() => {
  folder = temporaryFolder();
  config = join(folder.path, "settings", "evreg");
  contexts = new Contexts(config);
});
afterEach(() => folder.remove());

const PROD = { name: "prod", url: "https://events.example.com", token: "evreg_secret" };

test("a stored context is found by name, in files for this user only", () => {
  contexts.save(PROD);
  const dev = { name: "dev", url: "http://127.0.0.1:7480", allowInsecureToken: true };
  contexts.save(dev);
  expect(contexts.names()).toEqual(["dev", "prod"]);
  expect(["prod", "dev"].map((name) => contexts.get(name))).toEqual([PROD, dev]);
  const files = join(config, "contexts");
  expect(readdirSync(files)).toEqual(["dev.json", "prod.json"]);
  if (process.platform === "win32") return;
  expect(statSync(join(files, "prod.json")).mode & 0o777).toBe(0o600);
  for (const path of [config, files]) expect(statSync(path).mode & 0o777).toBe(0o700);
});

test("reading creates no folder, and finds nothing where there is none", () => {
  expect(contexts.names()).toEqual([]);
  expect(contexts.inUse()).toBeUndefined();
  expect(existsSync(config)).toBe(false);
  // An account whose home is a file, as `nobody` may have it.
  expect(new Contexts("/dev/null/evreg").inUse()).toBeUndefined();
});

test("a context is in use until another is chosen or it is removed", () => {
  contexts.save(PROD);
  contexts.save({ ...PROD, name: "dev" });
  contexts.use("prod");
  expect(contexts.inUse()).toBe("prod");
  contexts.remove("dev");
  expect(contexts.inUse()).toBe("prod");
  contexts.remove("prod");
  expect(contexts.inUse()).toBeUndefined();
  expect(contexts.names()).toEqual([]);
});

test("a folder in the place of a context's file is named, and not removed", () => {
  mkdirSync(join(config, "contexts", "prod.json"), { recursive: true, mode: 0o700 });
  expect(() => contexts.get("prod")).toThrow(/prod\.json is not a small file/);
  expect(() => contexts.remove("prod")).toThrow(/prod\.json could not be changed \(ERR_FS_EISDIR\)/);
});

test("a missing context is reported with the name that was probably meant", () => {
  expect(() => contexts.get("prod")).toThrow(/no context "prod"; there are none yet/);
  contexts.save(PROD);
  for (const act of ["get", "use", "remove"] as const)
    expect(() => contexts[act]("prd")).toThrow(/no context "prd"; did you mean prod\?/);
  expect(() => contexts.get("../prod")).toThrow(expect.objectContaining({ code: "not_found" }));
});

test("a name that is not a file's everywhere is refused", () => {
  for (const name of ["", "Prod", "../x", "a/b", ".hidden", "a b", "a\n", "x".repeat(65)])
    expect(() => contexts.save({ ...PROD, name })).toThrow(expect.objectContaining({ code: "usage" }));
  expect(existsSync(config)).toBe(false);
});

test("a file that is not a context is reported with what to do", () => {
  contexts.save(PROD);
  for (const text of [
    "",
    "{",
    "[]",
    "7",
    '{"token":"x"}',
    '{"url":1}',
    '{"url":"x"}',
    '{"url":"http://x","token":1}',
  ]) {
    writeFileSync(join(config, "contexts", "prod.json"), text);
    expect(() => contexts.get("prod")).toThrow(/prod\.json does not hold a context.*evreg context add/);
  }
});

describe.skipIf(process.platform === "win32")("files that others could write or read", () => {
  test.each([0o640, 0o604, 0o620, 0o602])("is not trusted: a file of mode %o", (mode) => {
    contexts.save(PROD);
    contexts.use("prod");
    chmodSync(join(config, "contexts", "prod.json"), mode);
    expect(() => contexts.get("prod")).toThrow(/cannot be trusted.*chmod 600 .*prod\.json/);
    chmodSync(join(config, "context-in-use"), mode);
    expect(() => contexts.inUse()).toThrow(/cannot be trusted.*chmod 600 .*context-in-use/);
  });

  test("is not trusted: a folder; no token is written to one", () => {
    contexts.save(PROD);
    chmodSync(join(config, "contexts"), 0o777);
    expect(() => contexts.get("prod")).toThrow(/chmod 700 .*contexts/);
    expect(() => contexts.save({ ...PROD, name: "dev" })).toThrow(/chmod 700 .*contexts/);
    expect(readdirSync(join(config, "contexts"))).toEqual(["prod.json"]);
  });

  test("a link is not followed", () => {
    contexts.save(PROD);
    const file = join(config, "contexts", "prod.json");
    writeFileSync(join(folder.path, "elsewhere"), '{"url":"https://x"}', { mode: 0o600 });
    rmSync(file);
    symlinkSync(join(folder.path, "elsewhere"), file);
    expect(() => contexts.get("prod")).toThrow(expect.objectContaining({ code: "usage" }));
  });

  test("a folder that cannot be created is reported, with where else it may be", () => {
    writeFileSync(join(folder.path, "file"), "");
    const inFile = new Contexts(join(folder.path, "file", "evreg"));
    expect(() => inFile.save(PROD)).toThrow(/could not be changed \(ENOTDIR\).*EVREG_CONFIG_DIR/);
  });
});
