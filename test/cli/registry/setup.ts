import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Declarations, readDeclarations } from "../../../src/cli/registry/declarations.ts";
import { parseFile } from "../../../src/cli/registry/documents.ts";
import { executeSteps } from "../../../src/cli/registry/apply.ts";
import { registryOf } from "../../../src/cli/registry/export.ts";
import { type Plan, planFor } from "../../../src/cli/registry/plan.ts";
import type { Evreg } from "../../../src/evreg.ts";

/** Writes files into a folder, by their paths in it. */
export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

/** What a text declares that needs no other file. */
export async function declaredBy(text: string, name = "registry.yaml"): Promise<Declarations> {
  const document = parseFile(name, Buffer.from(text));
  if ("problem" in document) return { actions: [], subscriptions: [], problems: [document.problem] };
  return readDeclarations([{ folder: "/nowhere", within: "/nowhere", document }]);
}

export async function planOf(
  evreg: Evreg,
  text: string,
  options: { prune?: boolean; name?: string } = {},
): Promise<Plan> {
  const { prune = false, name } = options;
  return planFor(await declaredBy(text, name), await registryOf(evreg), evreg.actions, { prune });
}

/** Does the steps of a plan, as far as they can be done. */
export function doSteps(
  evreg: Evreg,
  { steps }: Plan,
  { force = false, signal = new AbortController().signal }: { force?: boolean; signal?: AbortSignal } = {},
): ReturnType<typeof executeSteps> {
  return executeSteps(evreg, steps, { force, signal });
}

/** Problems as lines: `registry.yaml:3: …`. */
export function lines({ problems }: Pick<Declarations, "problems">): string[] {
  return problems.map(({ place, message }) => `${place}: ${message}`);
}
