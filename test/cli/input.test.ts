import { spawnSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { addAbortSignal, PassThrough, Readable } from "node:stream";
import { expect, test } from "vitest";
import { chunksOf, readInput, textFault } from "../../src/cli/io/input.ts";
import { useFolder } from "../support/command-line.ts";

const { at, write, expectEach } = useFolder({ EVREG_DATA: "." });

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

test("a read error in the middle of a file names the file and the reason", async () => {
  expect(await failureOf(failing("EIO", "EIO: i/o error, read"), "/mnt/events.ndjson")).toMatchObject({
    code: "usage",
    message: "/mnt/events.ndjson cannot be read (EIO: i/o error).",
  });
  const folder = failing("EISDIR", "EISDIR: illegal operation on a directory, read");
  const message = "The standard input is a folder; name a file.";
  expect(await failureOf(folder, "-")).toMatchObject({ message });
});

test("an interruption is reported as one", async () => {
  const interrupted = new AbortController();
  const stream = addAbortSignal(interrupted.signal, new PassThrough());
  const failure = failureOf(stream, "/mnt/events.ndjson");
  interrupted.abort();
  expect(await failure).toMatchObject({ name: "AbortError" });
});

test.runIf(process.platform === "linux")(
  "publishing such a file ends with 2 and reports the error",
  async () => {
    const told = /\/proc\/self\/mem cannot be read \(EIO/;
    await expectEach([
      ["publish --batch /proc/self/mem", 2, "", told],
      ["publish --batch /proc/self/mem --atomic", 2, "", told],
    ]);
  },
);

test.runIf(process.platform === "linux")(
  "a shell's pipe is read to its end, a device not read without end, and a loop of links named",
  async () => {
    symlinkSync("loop", at("loop"));
    await expectEach([
      ["config --config loop", 2, "", /^Error: The configuration file \S+loop cannot be read \(ELOOP\)/],
    ]);
    const apply = `"$0" bin/run.js apply --dry-run --data "$1" -f <(echo "actions: 7")`;
    const { stderr } = spawnSync("bash", ["-c", apply, process.execPath, at(".")], { encoding: "utf8" });
    expect(stderr).toMatch(/^Error: \/dev\/fd\/\d+:1: actions must be a list\n/);
    await expect(readInput("/dev/zero", 1_000_000)).rejects.toMatchObject({
      code: "usage",
      message: "/dev/zero holds more than the 1,000,000 bytes that are read at most; name a smaller file.",
    });
  },
);

test.each<[text: string | Buffer, isText: boolean]>([
  ["", true],
  ["\ufeffa: é\n", true],
  [Buffer.from("a: b\n", "utf16le"), false],
  ["a: b\nc: \0", false],
  [Buffer.from("e: é", "latin1"), false],
])("that a file of %j is text in UTF-8 is %s", (text, isText) => {
  expect(textFault(Buffer.from(text)) === undefined).toBe(isText);
});

test("registry and schema files that are not UTF-8 are named", async () => {
  write("wide.yaml", Buffer.from("\ufeffactions: []\n", "utf16le"));
  const told = /wide\.yaml: this is no text in UTF-8; save it as UTF-8/;
  await expectEach([
    ["apply -f wide.yaml", 2, "", told],
    ["actions create a --application a --schema wide.yaml", 1, "", told],
    ["import wide.yaml", 2, "", told],
  ]);
});
