import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { parse } from "yaml";
import { loadConfig } from "../../src/config/load.ts";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { exampleConfig } from "../../src/commands/config.ts";

const EXAMPLE = fileURLToPath(new URL("../../config.example.yaml", import.meta.url));
const text = readFileSync(EXAMPLE, "utf8");
const folder = mkdtempSync(join(tmpdir(), "evreg-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** `{ a: { b: 1 } }` as `[["a.b", 1]]`. */
function leaves(value: object, prefix = ""): [string, unknown][] {
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? leaves(member, `${prefix}${name}.`)
      : [[`${prefix}${name}`, member] as [string, unknown]],
  );
}

test("the example file is what the program writes (`evreg config example > config.example.yaml` writes it anew)", () => {
  expect(exampleConfig()).toBe(text);
});

test("the example file has every key with its default, in the table's order, and no other", () => {
  expect(leaves(parse(text) as object)).toEqual(CONFIG_KEYS.map((key) => [key.path, key.default]));
});

test("the comment of each key says what it is for, its bounds, its flag and its variables", () => {
  const unwrapped = text.replaceAll(/\n *# /g, " ");
  for (const { description, kind, path, flag, env, envAlias } of CONFIG_KEYS) {
    const range = kind.bounds !== undefined && path !== "port" ? ` From ${kind.bounds.join(" to ")}.` : "";
    const sources = `${flag === undefined ? "" : `--${flag}, `}${[env, envAlias].filter(Boolean).join(" or ")}`;
    expect(unwrapped).toContain(`${description}${range} (${sources}`);
  }
});

test("a copy of the example changes nothing", async () => {
  copyFileSync(EXAMPLE, join(folder, "evreg.config.yaml"));
  for (const env of [{}, { STATE_DIRECTORY: "/var/lib/evreg" }]) {
    const copied = await loadConfig({ env, cwd: folder });
    const none = await loadConfig({ env, cwd: folder, configFile: "/dev/null" });
    expect(copied.config).toEqual(none.config);
  }
});

test("names of keys, variables and flags are unique", () => {
  const names = CONFIG_KEYS.flatMap((key) => [key.env, key.envAlias, key.flag]).filter(
    (name) => name !== undefined,
  );
  expect(new Set(names).size).toBe(names.length);
});
