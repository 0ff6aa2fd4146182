import { PassThrough, Readable, addAbortSignal } from "node:stream";
import { expect, test } from "vitest";
import { chunksOf } from "../../src/cli/input.ts";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";

async function failureOf(stream: Readable, path: string): Promise<unknown> {
  try {
    for await (const chunk of chunksOf(stream, path)) expect(chunk.toString()).toBe("first");
  } catch (error) {
    return error;
  }
  return undefined;
}

function failing(code: string, message: string): Readable {
  let reads = 0;
  return new Readable({
    read() {
      reads += 1;
      if (reads === 1) this.push("first");
      else this.destroy(Object.assign(new Error(message), { code }));
    },
  });
}

test("a file that fails in the middle is named, with the reason", async () => {
  expect(await failureOf(failing("EIO", "EIO: i/o error, read"), "/mnt/events.ndjson")).toMatchObject({
    code: "usage",
    message: "/mnt/events.ndjson cannot be read (EIO: i/o error).",
  });
  expect(
    await failureOf(failing("EISDIR", "EISDIR: illegal operation on a directory, read"), "-"),
  ).toMatchObject({
    message: "The standard input is a folder; name a file.",
  });
});

test("an interruption stays one", async () => {
  const interrupted = new AbortController();
  const stream = addAbortSignal(interrupted.signal, new PassThrough());
  const failure = failureOf(stream, "/mnt/events.ndjson");
  interrupted.abort();
  expect(await failure).toMatchObject({ name: "AbortError" });
});

test.runIf(process.platform === "linux")("publishing such a file ends with 2 and says so", async () => {
  const folder = temporaryFolder();
  const { run } = commandLine(folder.path, { EVREG_DATA: folder.path });
  for (const more of [[], ["--atomic"]]) {
    const outcome = await run(["publish", "--batch", "/proc/self/mem", ...more]);
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toContain("/proc/self/mem cannot be read (EIO");
  }
  folder.remove();
});
