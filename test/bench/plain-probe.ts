import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";

const FILES = ["probe", "calls", "cpu-share"];

/**
 * The probe as plain JavaScript, in a folder that is made: what Node loads to take types out of a file itself would stay in
 * the server under test and weigh 15 MB of what is measured there. Answers the file to preload.
 */
export function plainProbe(folder: string): string {
  mkdirSync(folder, { recursive: true });
  for (const name of FILES) {
    const source = readFileSync(new URL(`${name}.ts`, import.meta.url), "utf8");
    const plain = stripTypeScriptTypes(source).replaceAll(/from "\.\/([\w-]+)\.ts"/g, 'from "./$1.mjs"');
    writeFileSync(join(folder, `${name}.mjs`), plain);
  }
  return join(folder, "probe.mjs");
}
