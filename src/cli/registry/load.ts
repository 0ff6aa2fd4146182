import { realpath } from "node:fs/promises";
import { usage } from "../usage.ts";
import { mistakes, readDeclarations, type Declarations } from "./declared.ts";
import { readFiles } from "./files.ts";

/**
 * What the files at these paths declare.
 * @throws `usage` with every mistake and its place
 */
export async function loadDeclarations(
  paths: readonly string[],
  bearerTokenDir: string | undefined,
): Promise<Declarations> {
  const { files, problems } = await readFiles(paths);
  const references = bearerTokenDir === undefined ? {} : { bearerTokenFolder: await folder(bearerTokenDir) };
  const declared = await readDeclarations(files, references);
  const all = [...problems, ...declared.problems];
  if (all.length > 0) throw mistakes(all);
  return declared;
}

async function folder(path: string): Promise<string> {
  return realpath(path).catch(() => {
    throw usage(`--bearer-token-dir: there is no folder ${path}.`);
  });
}
