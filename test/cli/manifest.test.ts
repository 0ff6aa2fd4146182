import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Plugin, settings } from "@oclif/core";
import { beforeAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

interface Manifest {
  readonly commands: Readonly<Record<string, ManifestCommand>>;
}
interface ManifestCommand {
  readonly summary?: string;
  readonly description?: string;
  readonly examples?: readonly (string | { command: string; description: string })[];
  readonly args: Readonly<Record<string, { description?: string }>>;
  readonly flags: Readonly<
    Record<
      string,
      { summary?: string; description?: string; required?: boolean; helpGroup?: string; char?: string }
    >
  >;
  readonly usage?: string | readonly string[];
}

let built: Manifest;

beforeAll(async () => {
  settings.enableAutoTranspile = false;
  const plugin = new Plugin({
    root: ROOT,
    type: "core",
    ignoreManifest: true,
    errorOnManifestCreate: true,
    respectNoCacheDefault: true,
  });
  await plugin.load();
  built = JSON.parse(JSON.stringify(plugin.manifest)) as Manifest;
});

test("oclif.manifest.json is that of the commands as they are (`npm run manifest` writes it anew)", () => {
  const kept = JSON.parse(readFileSync(`${ROOT}/oclif.manifest.json`, "utf8")) as Manifest;
  expect(kept).toEqual(built);
});

test("the manifest has a stable order", () => {
  const kept = JSON.parse(readFileSync(`${ROOT}/oclif.manifest.json`, "utf8")) as Manifest;
  const ids = Object.keys(kept.commands);
  const [alone, underTopics] = [ids.filter((id) => !id.includes(":")), ids.filter((id) => id.includes(":"))];
  expect(ids).toEqual([...alone.toSorted(), ...underTopics.toSorted()]);
});

test("every command has a summary and an example", () => {
  const commands = Object.entries(built.commands);
  expect(commands.length).toBeGreaterThan(15);
  for (const [id, { summary, examples = [], args, flags }] of commands) {
    expect.soft(summary, id).toMatch(/^[A-Z].+\.$/);
    expect.soft(examples.length, `${id} has examples`).toBeGreaterThan(0);
    for (const example of examples) {
      const line = typeof example === "string" ? example : example.command;
      expect.soft(line, id).toMatch(/(?:^|[ (])evreg /);
    }
    for (const [name, arg] of Object.entries(args))
      expect.soft(arg.description, `${id} ${name}`).toBeTruthy();
    for (const [name, flag] of Object.entries(flags))
      expect.soft(flag.summary, `${id} --${name}`).toBeTruthy();
  }
});

test("lines that help does not wrap fit into 80 columns", () => {
  for (const [id, { summary = "", examples = [] }] of Object.entries(built.commands)) {
    expect(summary.length, id).toBeLessThanOrEqual(80);
    for (const example of examples) {
      if (typeof example !== "string") continue;
      expect(`  $ ${example}`.length, example).toBeLessThanOrEqual(80);
    }
  }
});

test("help wraps no example inside quotes, and is aligned", () => {
  for (const [id, { examples = [], flags }] of Object.entries(built.commands)) {
    for (const example of examples) {
      const { command } = typeof example === "string" ? { command: example } : example;
      const line = `    $ ${command}`;
      if (line.length > 80)
        expect.soft(line.slice(0, 80), id).not.toMatch(/^[^'"]*(?:(['"])[^'"]*\1[^'"]*)*['"][^'"]*$/);
    }
    // oclif takes the indentation of the first line away, so a flag without a letter must not stand there before others.
    const own = Object.values(flags).filter(({ helpGroup }) => helpGroup === undefined);
    if (own.some(({ char }) => char !== undefined)) expect.soft(own[0]?.char, id).toBeDefined();
  }
});
