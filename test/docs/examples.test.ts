import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, type ExpectStatic, test } from "vitest";
import { parse } from "yaml";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { freePort } from "../support/free-port.ts";
import { cleanEnv, runProgram, STARTED_BY, startProgram, temporaryFolder } from "../support/program.ts";
import { type Block, blocksOf, fileNamedBy, PAGES, ROOT } from "./documents.ts";

// The blocks of the documents, run page by page in their order, as a reader would who copies them one after the other.

interface Setting {
  /** What the reader of the page has already, made by a script. */
  readonly prepare?: string;
  /** Flags of the server that runs meanwhile; `none`: no server runs. */
  readonly server?: "--dev" | "with token" | "none";
}

const ORDERS = `echo '{"type": "object"}' | evreg actions create order.created --application shop --schema -`;
const subscribe = (name: string): string =>
  `evreg subscriptions create --application billing --subscription ${name} --action order.created --handler http://127.0.0.1:9/`;

const SETTINGS: Readonly<Record<string, Setting>> = {
  "docs/backups.md": { prepare: `${ORDERS}; mkdir -p /var/backups` },
  "docs/command-line.md": {
    server: "with token",
    prepare: `
      mkdir -p ~/.config/evreg ~/.config/fish/completions; umask 077
      echo "remote: {url: https://events.example.com, token: $(cat .evreg/token)}" |
        tee ~/.config/evreg/staging.yaml > ~/.config/evreg/production.yaml`,
  },
  "docs/compatibility.md": {
    prepare: `
      echo '{"properties": {"id": {"type": "string"}, "total": {"type": "number"}, "email": {"type": "string"}}, "required": ["id", "total"]}' |
        evreg actions create order.created --application shop --schema -
      echo '{"type": "object"}' | evreg actions create order.created.v2 --application shop --schema -
      evreg publish order.created '{"id": "A-1", "total": 1, "email": "ada@example.com"}'
      evreg publish order.created '{"id": "A-2", "total": 1}'
      printf '%s\\n' '{' '  "type": "object",' '  "required": ["id", "total", "email"],' '  "properties": {"id": {"type": "string"}, "total": {"type": "number"}, "email": {"type": "string"}}' '}' > order.json`,
  },
  "docs/delivering.md": {
    prepare: `${ORDERS}; ${subscribe("one")}; ${subscribe("two")}
      echo '{"type": "object"}' | evreg actions create item.counted --application stock --schema -`,
  },
  "docs/publishing.md": {
    prepare: `${ORDERS}; echo '{"action": "order.created", "payload": {"id": 7}}' > events.ndjson`,
  },
  "docs/pull.md": { prepare: ORDERS },
  "docs/receivers.md": { prepare: `${ORDERS}; ${subscribe("one")}; echo value > receiver.token` },
  "docs/registry.md": {
    prepare: `${ORDERS}; mkdir registry
      echo '{"type": "object", "properties": {"id": {"type": "string"}}}' > registry/order.created.schema.json`,
  },
  "docs/schemas.md": {
    prepare: `echo '{"type": "object", "required": ["id", "total"], "properties": {"id": {"type": "string"}, "total": {"type": "number"}}}' |
        evreg actions create order.created --application shop --schema -`,
  },
  "docs/security.md": { prepare: "mkdir -p /etc/evreg" },
  "docs/tokens.md": { server: "with token" },
  "docs/upgrading.md": { server: "none", prepare: ORDERS },
};

const folders: { remove(): void }[] = [];
afterAll(() => {
  for (const folder of folders) folder.remove();
});

interface Session {
  readonly cwd: string;
  /** The text of a page with this session's places instead of those that it names. */
  readonly place: (text: string) => string;
  /** Runs a script to its end. @returns all it printed */
  readonly run: (script: string) => Promise<string>;
  readonly close: () => Promise<void>;
}

async function openSession({ server: kind = "--dev" }: Setting): Promise<Session> {
  const folder = temporaryFolder();
  folders.push(folder);
  const at = (name: string): string => join(folder.path, name);
  for (const name of ["bin", "home", "work", "work/node_modules", "work/.evreg"]) {
    mkdirSync(at(name), { mode: 0o700 });
  }
  const program = STARTED_BY.map((word) => `'${word}'`).join(" ");
  writeFileSync(at("bin/evreg"), `#!/bin/sh\nexec ${program} "$@"\n`);
  writeFileSync(at("bin/npx"), `#!/bin/sh\nexec "$@"\n`);
  for (const name of ["bin/evreg", "bin/npx"]) chmodSync(at(name), 0o755);
  symlinkSync(ROOT, at("work/node_modules/evreg"));
  const cwd = at("work");
  const receiver = await freePort();
  const server =
    kind === "none"
      ? undefined
      : await startProgram(at("work/.evreg"), kind === "--dev" ? ["--dev", "--log-level", "warn"] : []);
  const url = server?.url ?? "";
  const place = (text: string): string =>
    text
      .replaceAll(/https:\/\/events\.example\.com|http:\/\/127\.0\.0\.1:7480/g, url)
      .replaceAll("9000", String(receiver))
      .replaceAll(/\/(?:etc|var\/lib|var\/backups)\b/g, (path) => at(`system${path}`));
  const env = cleanEnv({
    HOME: at("home"),
    PATH: `${at("bin")}:${process.env["PATH"] ?? ""}`,
    COLUMNS: "200",
    // Compiled code is kept there over all pages, which halves the time of a command.
    XDG_CACHE_HOME: join(ROOT, "node_modules/.cache"),
  });
  const groups: number[] = [];
  const run = async (script: string): Promise<string> => {
    writeFileSync(at("script"), place(script));
    const output = openSync(at("output"), "w");
    const input = openSync(kind === "with token" ? at("work/.evreg/token") : "/dev/null", "r");
    // A group of its own, so that what it leaves running can be ended with it.
    const child = spawn("bash", [at("script")], { cwd, env, stdio: [input, output, output], detached: true });
    groups.push(child.pid ?? 0);
    await once(child, "exit");
    for (const descriptor of [input, output]) closeSync(descriptor);
    return readFileSync(at("output"), "utf8");
  };
  const close = async (): Promise<void> => {
    for (const group of groups) {
      try {
        process.kill(-group, "SIGKILL");
      } catch {
        // All of it has ended.
      }
    }
    await server?.end("SIGTERM");
  };
  return { cwd, place, run, close };
}

/** What differs from run to run: times, secrets, and the widths of columns. */
function normalized(output: string): string {
  return output
    .replaceAll(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/g, "TIME")
    .replaceAll(/whsec_[\w+/=…]+/g, "SECRET")
    .replaceAll(/ +/g, " ")
    .replaceAll(/ $/gm, "")
    .trim();
}

/** What a block printed, without what the receiver of the tour printed meanwhile where the page does not show it. */
function shownOf(printed: string, output: string): string {
  return normalized(output.includes('"event_id"') ? printed : printed.replaceAll(/\{"event_id".*\n/g, ""));
}

const BEGIN = "\u001E";
const FAILED = "\u001F";

/** Each block in a shell of its own, with a mark before it. One whose output is shown may fail. */
function scriptOf(blocks: readonly { readonly block: Block; readonly output: string | undefined }[]): string {
  const shells = blocks.map(({ block, output }) =>
    output === undefined
      ? `printf '${BEGIN}'\n(set -e\n${block.text}) || printf '${FAILED}'`
      : `printf '${BEGIN}'\n(\n${block.text})`,
  );
  return shells.join("\n");
}

const GROUPS = new Set(CONFIG_KEYS.map(({ path }) => path.split(".")[0]));
const isConfig = (text: string): boolean =>
  Object.keys(parse(text) as object).every((key) => GROUPS.has(key) && key !== "data");

const isRun = ({ language, text, notRun }: Block): boolean =>
  notRun === undefined && ["sh", "js", "ts", "yaml"].includes(language) && !text.startsWith("// receiver.js");

/** Each page takes seconds, so the ordinary suite runs the tour only; `npm run check:docs` runs all pages. */
const RUN = PAGES.filter((page) => process.env["EXAMPLES"] === "all pages" || page === "README.md");

describe.concurrent.each(RUN.filter((page) => blocksOf(page).some(isRun)))("%s", (page) => {
  test("its examples do what the page says", async ({ expect }) => {
    const blocks = blocksOf(page);
    const setting = SETTINGS[page] ?? {};
    const session = await openSession(setting);
    const { cwd, place, run } = session;
    try {
      for (const { text } of blocks) {
        const name = fileNamedBy(text);
        if (name === undefined) continue;
        mkdirSync(dirname(join(cwd, name)), { recursive: true });
        writeFileSync(join(cwd, name), text);
      }
      if (setting.prepare !== undefined) {
        const prepared = await run(`set -e\n(\n${setting.prepare}\n) || printf '${FAILED}'`);
        expect(prepared).not.toContain(FAILED);
      }
      const scripts = blocks.flatMap((block, index) => {
        if (block.language !== "sh" || !isRun(block)) return [];
        const next = blocks[index + 1];
        return [{ block, output: next?.language === "" ? next.text : undefined }];
      });
      const printed = scripts.length === 0 ? [] : (await run(scriptOf(scripts))).split(BEGIN).slice(1);
      for (const [index, { block, output }] of scripts.entries()) {
        const where = `${page}:${block.line}\n${printed[index]}`;
        if (output === undefined) expect.soft(where).not.toContain(FAILED);
        else expect.soft(shownOf(printed[index] ?? "", output), where).toBe(normalized(place(output)));
      }
      for (const block of blocks.filter(isRun)) await runBlock(block, session, expect);
    } finally {
      await session.close();
    }
  });
});

/** Those that no shell runs. */
async function runBlock(block: Block, session: Session, expect: ExpectStatic): Promise<void> {
  const { page, line, language, text } = block;
  const { cwd, place, run } = session;
  const where = `${page}:${line}`;
  const write = (name: string, content: string): void => writeFileSync(join(cwd, name), content);
  if (language === "yaml") {
    if (!isConfig(text)) return;
    write("checked.yaml", text);
    const { code, stderr } = await runProgram(["config", "--config", "checked.yaml"], { cwd });
    expect.soft(code, `${where}\n${stderr}`).toBe(0);
  } else if (language === "js") {
    write("block.mjs", place(text));
    const printed = await run(`EVREG_TOKEN=none '${process.execPath}' block.mjs || printf '${FAILED}'`);
    expect.soft(printed, where).not.toContain(FAILED);
  } else if (language === "ts") {
    write("block.ts", text);
    const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
    const printed = await run(
      `'${process.execPath}' '${compiler}' --noEmit --strict block.ts || printf '${FAILED}'`,
    );
    expect.soft(printed, where).not.toContain(FAILED);
  }
}
