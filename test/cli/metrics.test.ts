import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { copyOfBuild, startProgram } from "../support/program.ts";
import { useFolder } from "../support/command-line.ts";

const { at } = useFolder();

test("a server answers with its metrics also once its program has been built anew", async () => {
  const server = await startProgram(at("built"), ["--dev"], {}, [], copyOfBuild(at("checkout")));
  rmSync(at("checkout/dist"), { recursive: true });
  const answer = await fetch(`${server.url}/metrics`);
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain("evreg_engine_running 1");
  await server.end("SIGTERM");
});
