import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "./program.ts";

const COMPILER = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

/**
 * What the compiler says about a source, strict and with all the checks on that a project may have.
 * @returns its lines, none when it is content
 */
export async function compilerComplaints(source: string): Promise<string[]> {
  const folder = temporaryFolder();
  try {
    const file = join(folder.path, "source.ts");
    writeFileSync(file, source);
    return await lines(folder.path, [COMPILER, ...FLAGS, file]);
  } finally {
    folder.remove();
  }
}

/** Without the browser's types, which nothing here needs: reading them takes most of the time. */
const FLAGS =
  "--noEmit --strict --target es2022 --lib es2022 --module nodenext --exactOptionalPropertyTypes --noUncheckedIndexedAccess --isolatedModules".split(
    " ",
  );

function lines(cwd: string, words: readonly string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const compiler = spawn(process.execPath, words, { cwd, stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    compiler.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
    compiler.on("error", reject);
    compiler.on("close", () => resolve(said.split("\n").filter((line) => line !== "")));
  });
}
