import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { useAlone } from "./alone.ts";

// libSQL's native part must be a file before the system loads it. Where that can lie is found by trying.

const alone = useAlone();
const SHARED = `evreg-${process.getuid?.()}`;
const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
/** Has no entry in the list of users. */
const UNKNOWN = 54_321;
const mounts: string[] = [];

afterEach(() => {
  for (const path of mounts.splice(0)) spawnSync("umount", [path]);
});

function folderOf(name: string): string {
  const path = join(alone.folder, name);
  mkdirSync(path);
  return path;
}

/** False where nothing can be mounted, which needs root and a kernel that lets it. */
function mount(path: string, options: string): boolean {
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path]);
  if (status === 0) mounts.push(path);
  return status === 0;
}

/** The copies of the native part that lie in a folder. */
const copiesIn = (folder: string): string[] =>
  existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];

/** Needs the data file, and so the native part. */
const runWith = (env: Record<string, string>, data = alone.data) =>
  alone.run(`actions create a.b --application x --schema - --data ${data}`, env, "{}");
const actions = (env: Record<string, string>) => alone.run(`actions --data ${alone.data}`, env);

test("the driver is unpacked to the user's cache, once and for this user only", async () => {
  const home = folderOf("home");
  expect(await runWith({ HOME: home })).toMatchObject({ code: 0 });
  const [copy = "", ...others] = copiesIn(join(home, ".cache", "evreg"));
  expect(others).toEqual([]);
  expect(statSync(copy).mode & 0o777).toBe(0o500);
  expect(statSync(join(copy, "..")).mode & 0o777).toBe(0o700);
  const { ino } = statSync(copy);
  expect(await actions({ HOME: home })).toMatchObject({ code: 0 });
  expect(statSync(copy).ino).toBe(ino);
});

test("an altered copy is replaced before it is loaded", async () => {
  const home = folderOf("home");
  await runWith({ HOME: home });
  const [copy = ""] = copiesIn(join(home, ".cache", "evreg"));
  const whole = readFileSync(copy);
  chmodSync(copy, 0o700);
  for (const damaged of [whole.subarray(0, 1_000), Buffer.alloc(whole.length), Buffer.from("")]) {
    writeFileSync(copy, damaged);
    expect(await actions({ HOME: home })).toMatchObject({ code: 0 });
    expect(readFileSync(copy).equals(whole)).toBe(true);
    chmodSync(copy, 0o700);
  }
});

test("several first starts at once work", async () => {
  const home = folderOf("home");
  const folders = ["a", "b", "c", "d"].map((name) => join(alone.folder, name));
  const outcomes = await Promise.all(folders.map((data) => runWith({ HOME: home }, data)));
  for (const outcome of outcomes) expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(copiesIn(join(home, ".cache", "evreg"))).toHaveLength(1);
});

test("without a home it is in the folder for temporary files, and no home is created", async () => {
  const temporary = folderOf("tmp");
  const home = join(alone.folder, "no", "home");
  expect(await runWith({ HOME: home, TMPDIR: temporary })).toMatchObject({ code: 0 });
  expect(existsSync(home)).toBe(false);
  expect(copiesIn(join(temporary, SHARED))).toHaveLength(1);
});

const hasSetpriv = spawnSync("setpriv", ["--version"]).status === 0;

test.skipIf(!isRoot || !hasSetpriv)("a user unknown to the system, without a home, can run it", async () => {
  for (const path of [dirname(alone.executable), alone.folder]) chmodSync(path, 0o755);
  for (const path of [alone.data, folderOf("tmp")]) chownSync(path, UNKNOWN, UNKNOWN);
  const become = ["setpriv", `--reuid=${UNKNOWN}`, `--regid=${UNKNOWN}`, "--clear-groups"];
  const env = { TMPDIR: join(alone.folder, "tmp") };
  const server = await alone.serve(env, become);
  const outcome = await alone.run(`doctor --data ${alone.data}`, env, "", become);
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(outcome.stdout).toMatch(/^ok +reach /m);
  expect((await server.end("SIGTERM")).code).toBe(0);
  expect(copiesIn(join(env.TMPDIR, `evreg-${UNKNOWN}`))).toHaveLength(1);
});

test.skipIf(!isRoot)(
  "a home that cannot be written to, and a folder without executables, are skipped",
  async (context) => {
    const [home, temporary, runtime] = ["home", "tmp", "run"].map(folderOf) as [string, string, string];
    if (!mount(home, "ro") || !mount(temporary, "noexec")) context.skip("nothing can be mounted here");
    const env = { HOME: home, TMPDIR: temporary };
    expect(await runWith({ ...env, XDG_RUNTIME_DIR: runtime })).toMatchObject({ code: 0 });
    expect(copiesIn(join(runtime, SHARED))).toHaveLength(1);
    const server = await alone.serve({ ...env, EVREG_CACHE_DIR: folderOf("named") });
    expect((await server.end("SIGTERM")).code).toBe(0);
    expect(copiesIn(join(alone.folder, "named"))).toHaveLength(1);
  },
);

test.skipIf(!isRoot)("where no folder is suitable, the message says why and what to set", async (context) => {
  const named = folderOf("named");
  if (!mount(named, "noexec")) context.skip("nothing can be mounted here");
  const outcome = await runWith({ EVREG_CACHE_DIR: named });
  expect(outcome).toMatchObject({ stdout: "" });
  expect(outcome.code).not.toBe(0);
  expect(outcome.stderr).toMatch(/set EVREG_CACHE_DIR to .*named: mounted noexec/s);
  expect(await runWith({ EVREG_CACHE_DIR: folderOf("other") })).toMatchObject({ code: 0 });
  const doctor = await alone.run(`doctor --data ${alone.data}`, { EVREG_CACHE_DIR: named });
  expect(doctor).toMatchObject({ code: 1, stderr: "" });
  expect(doctor.stdout).toMatch(/^problem +reach +.*cannot be opened: .*set EVREG_CACHE_DIR/m);
  const nowhere = await runWith({ EVREG_CACHE_DIR: "/proc/evreg" });
  expect(nowhere.stderr).toContain("/proc/evreg: ENOENT");
  // What needs no data file goes on.
  expect(await alone.run("--version", { EVREG_CACHE_DIR: named })).toMatchObject({ code: 0 });
});

test.skipIf(!isRoot)("another user's folder in the shared one is not trusted", async () => {
  const temporary = folderOf("tmp");
  const [foreign, runtime] = [join(temporary, SHARED), folderOf("run")];
  mkdirSync(foreign);
  chownSync(foreign, NOBODY, NOBODY);
  const env = { XDG_RUNTIME_DIR: "", TMPDIR: temporary, CACHE_DIRECTORY: "" };
  expect(await runWith(env)).toMatchObject({ code: 0 });
  expect(copiesIn(foreign)).toEqual([]);
  const stderr = expect.stringContaining("not a folder of this user");
  expect(await runWith({ EVREG_CACHE_DIR: foreign })).toMatchObject({ stdout: "", stderr });
  expect(copiesIn(runtime)).toEqual([]);
});
