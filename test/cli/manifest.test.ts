import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Plugin, settings } from "@oclif/core";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

interface Manifest {
  readonly commands: Readonly<Record<string, ManifestCommand>>;
}
interface ManifestCommand {
  readonly summary?: string;
  readonly examples?: readonly (string | { command: string; description: string })[];
  readonly args: Readonly<Record<string, { description?: string }>>;
  readonly flags: Readonly<Record<string, { summary?: string; helpGroup?: string; char?: string }>>;
}

/** As it is kept. */
const kept = JSON.parse(readFileSync(`${ROOT}/oclif.manifest.json`, "utf8")) as Manifest;
const commands = Object.entries(kept.commands);

test("oclif.manifest.json is that of the commands as they are (`npm run manifest` writes it anew)", async () => {
  settings.enableAutoTranspile = false;
  const plugin = new Plugin({
    root: ROOT,
    type: "core",
    ignoreManifest: true,
    errorOnManifestCreate: true,
    respectNoCacheDefault: true,
  });
  await plugin.load();
  expect(kept).toEqual(JSON.parse(JSON.stringify(plugin.manifest)));
  const ids = commands.map(([id]) => id);
  const [alone, underTopics] = [ids.filter((id) => !id.includes(":")), ids.filter((id) => id.includes(":"))];
  expect(ids, "a stable order").toEqual([...alone.toSorted(), ...underTopics.toSorted()]);
});

test("every command has a summary and an example", () => {
  expect(commands.length).toBeGreaterThan(15);
  for (const [id, { summary, examples = [], args, flags }] of commands) {
    expect.soft(summary, id).toMatch(/^[A-Z].{1,78}\.$/);
    expect.soft(examples.length, `${id} has examples`).toBeGreaterThan(0);
    for (const [name, arg] of Object.entries(args))
      expect.soft(arg.description, `${id} ${name}`).toBeTruthy();
    for (const [name, flag] of Object.entries(flags))
      expect.soft(flag.summary, `${id} --${name}`).toBeTruthy();
  }
});

test("an example fits into 80 columns, or help does not wrap it inside quotes, and flags are aligned", () => {
  for (const [id, { examples = [], flags }] of commands) {
    for (const example of examples) {
      const line = typeof example === "string" ? example : example.command;
      expect.soft(line, id).toMatch(/(?:^|[ (])evreg /);
      if (typeof example === "string") expect.soft(`  $ ${line}`.length, line).toBeLessThanOrEqual(80);
      const shown = `    $ ${line}`;
      if (shown.length > 80)
        expect.soft(shown.slice(0, 80), id).not.toMatch(/^[^'"]*(?:(['"])[^'"]*\1[^'"]*)*['"][^'"]*$/);
    }
    // oclif takes the indentation of the first line away, so a flag without a letter must not stand there before others.
    const own = Object.values(flags).filter(({ helpGroup }) => helpGroup === undefined);
    if (own.some(({ char }) => char !== undefined)) expect.soft(own[0]?.char, id).toBeDefined();
  }
});
