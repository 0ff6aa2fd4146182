import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runProgram, startProgram } from "../support/program.ts";
import { inLongForm, lengthOf, report } from "./length.ts";
import { makeData } from "./power-cut/data.ts";
import { cannotRecord, Recording, ReportedFiles } from "./power-cut/recording.ts";

// The promise under test: a cut of the power during the first start or any command that writes files locks nobody out, and
// each file that a command said it wrote is there.

const missing = cannotRecord();
const { "cuts in a first start": cuts, "cuts in commands": cutsInCommands } =
  lengthOf("faults/power-cut-commands");
const TIMEOUT_MS = 60_000 + cuts * 12_000;
/** A handler where nobody answers. */
const NOWHERE = "http://127.0.0.1:9/hook";

describe.skipIf(missing !== undefined)(
  `a power cut (skipped where something is missing: ${missing ?? "nothing is"})`,
  () => {
    test(
      `during the first start, ${cuts} times: the operator has a token that opens the server`,
      { timeout: TIMEOUT_MS },
      async () => {
        const recording = await Recording.begin();
        const data = "srv/evreg";
        const server = await startProgram(join(recording.folder, data), [], recording.env);
        const told = new ReportedFiles(recording);
        told.note(`${data}/token`);
        await server.end("SIGKILL");
        await recording.images(cuts, async (image) => {
          told.expectIn(image);
          const again = await startProgram(join(image.folder, data));
          const token = readFileSync(join(image.folder, data, "token"), "utf8").trim();
          const headers = { authorization: `Bearer ${token}` };
          const answer = await fetch(`${again.url}/v1/tokens`, { headers });
          await again.end("SIGKILL");
          expect(answer.status).toBe(200);
          told.expectIn(image);
        });
        report("power cut in a first start", { cuts });
      },
    );

    inLongForm(
      `during commands, ${cutsInCommands} times: each file that one said it wrote is there`,
      { timeout: TIMEOUT_MS },
      async () => {
        const recording = await Recording.begin(async (folder) => {
          await makeData(join(folder, "data"), NOWHERE, 50);
          mkdirSync(join(folder, "out"));
          writeFileSync(join(folder, "out/old.db"), "a backup of last week");
        });
        const { folder } = recording;
        const told = new ReportedFiles(recording);
        const run = async (line: string, writes: readonly string[], code = 0): Promise<void> => {
          told.changes(...writes);
          const words = line.split(" ");
          const outcome = await runProgram(words, {
            cwd: folder,
            env: { ...recording.env, EVREG_DATA: join(folder, "data") },
          });
          expect(outcome.code, `${line}: ${outcome.stderr}`).toBe(code);
          for (const path of writes) told.note(path);
        };
        told.note("out/old.db");
        await run("backup out/new.db", ["out/new.db"]);
        await run("backup out/old.db --force", ["out/old.db"]);
        await recording.images(cutsInCommands, async (image) => told.expectIn(image));
        report("power cut in commands", { cuts: cutsInCommands, files: told.count });
      },
    );
  },
);
