import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { RawJson } from "../../../src/json/raw-json.ts";
import { type Outcome, runProgram } from "../../support/program.ts";
import { useServed } from "../../support/served.ts";

// A command in a shell that gives it less than a terminal does. Each is a process, as its ends are what is tested.

const EVENTS = 60;
/** All events together are more than a pipe takes. */
const TEXT = "é".repeat(4_000);

const served = useServed(async ({ evreg }) => {
  await evreg.actions.create({ action: "a.b", application: "shop", schemata: { type: "object" } });
  const payload = RawJson.fromValue({ text: TEXT });
  await evreg.events.publishBatch(Array.from({ length: EVENTS }, () => ({ action: "a.b", payload })));
});

/** @param line of `sh`, in which `"$@"` is the program */
function inShell(
  line: string,
  env: Record<string, string> = {},
  shell: readonly string[] = ["sh"],
): Promise<Outcome> {
  const through = [...shell, "-c", line, "sh"];
  return runProgram([], { cwd: served.folder, env: { EVREG_DATA: served.data, ...env }, through });
}

function throughHead(words: string): Promise<Outcome> {
  return inShell(`{ "$@" ${words}; echo "code $?" >&2; } | head -c 8`);
}

describe.skipIf(process.platform === "win32")("in a shell", () => {
  test("a reader that closes the pipe ends a command quietly", async () => {
    const ended = { code: 0, stderr: "code 0\n" };
    expect(await throughHead("events --output jsonl")).toEqual({ ...ended, stdout: '{"rowid"' });
    expect(await throughHead("events --json")).toEqual({ ...ended, stdout: '{"data":' });
  });

  test("with stdin closed a command works, and one that reads stdin says what is missing", async () => {
    expect(await inShell('"$@" events get 1 --json <&-')).toEqual({
      code: 0,
      stdout: expect.stringContaining(TEXT),
      stderr: "",
    });
    expect(await inShell('"$@" publish a.b - <&-')).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^Error: .*it is empty/),
    });
  });

  test("a folder on stdin is not taken for an empty file", async () => {
    expect(await inShell('"$@" publish --batch - < .')).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^Error: The standard input is a folder/),
    });
  });

  test.skipIf(!existsSync("/usr/bin/setsid"))(
    "a command works without a terminal and with hardly an environment",
    async () => {
      const bare = 'exec env -i EVREG_DATA="$EVREG_DATA" "$@" actions get a.b';
      const outcome = await inShell(bare, {}, ["/usr/bin/setsid", "-w", "sh"]);
      expect(outcome).toEqual(await inShell('"$@" actions get a.b'));
      expect(outcome).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^Action +a\.b\n/),
        stderr: "",
      });
    },
  );

  test("LANG=C does not change the output", async () => {
    const words = ["events", "get", "1"];
    const plain = await inShell(`"$@" ${words.join(" ")}`, { LANG: "C", LC_ALL: "C" });
    expect(plain).toMatchObject({ code: 0, stdout: expect.stringContaining("é") });
    expect(plain).toEqual(await served.run(words, { env: { LANG: "en_US.UTF-8", LC_ALL: "en_US.UTF-8" } }));
  });
});
