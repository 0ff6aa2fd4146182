import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";

// The README's commands hold wherever a person may clone. Each place gets a copy of this checkout, with the packages
// that `npm ci` has put into it, so that npm fetches nothing again; what else `npm ci` does is done there.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MEMORY = "/dev/shm";
const COPY_BYTES = 1024 ** 3;
/** Has no entry in the list of users, as a container's `--user 54321`. */
const UNKNOWN = 54_321;
/** Those that mind where they are: of rights, of paths in a shell, and of the whole program beside a part. */
const TESTS = ["store/folder", "cli/output/streams", "cli/process"];

const made: string[] = [];
afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

/** A copy of the checkout as git would clone it, what is not committed yet included, in a folder of its own. */
function copyOf(parent: string, name: string): string {
  const place = mkdtempSync(join(parent, name));
  made.push(place);
  const checkout = join(place, "evreg");
  const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { stdout } = spawnSync("git", list, { cwd: ROOT, encoding: "utf8" });
  for (const file of stdout.split("\0").filter((path) => path !== "" && existsSync(join(ROOT, path)))) {
    mkdirSync(dirname(join(checkout, file)), { recursive: true });
    cpSync(join(ROOT, file), join(checkout, file));
  }
  spawnSync("cp", ["-a", join(ROOT, "node_modules"), checkout]);
  for (const leftover of [".bin/node", ".cache", ".vite"]) {
    rmSync(join(checkout, "node_modules", leftover), { recursive: true, force: true });
  }
  return checkout;
}

interface Being {
  /** A command that becomes npm, with its options. */
  readonly through?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** What `npm ci` does beside fetching, the chosen tests, and a command from elsewhere; each must end well. */
function works(checkout: string, { through = [], env = {} }: Being): void {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(EVREG_|SERVICE_|VITEST|NODE_|npm_|FAULTS|TMPDIR)/.test(name),
  );
  // As in a person's shell: without the Node that npm has put first for this test.
  const PATH = (process.env["PATH"] ?? "").split(":").filter((folder) => !folder.includes("node_modules"));
  const own = { ...Object.fromEntries(kept), PATH: PATH.join(":"), ...env };
  const lines = [
    { cwd: checkout, words: ["npm", "run", "prepare"] },
    { cwd: checkout, words: ["npm", "test", "--", ...TESTS.map((name) => `test/${name}.test.ts`)] },
    { cwd: "/", words: ["npx", "--prefix", checkout, "evreg", "--version"] },
  ];
  for (const { cwd, words } of lines) {
    const [command = "", ...rest] = [...through, ...words];
    const { status, stdout, stderr } = spawnSync(command, rest, { cwd, env: own, encoding: "utf8" });
    expect(status, `${words.join(" ")}\n${stdout}${stderr}`).toBe(0);
  }
}

const isPossible = ([command = "", ...rest]: readonly string[]): boolean =>
  spawnSync(command, [...rest, "true"]).status === 0;

test("a checkout works in a private folder with spaces and other scripts in its path, without HOME", () => {
  const checkout = copyOf(tmpdir(), "größe и пробел ");
  chmodSync(dirname(checkout), 0o700);
  works(checkout, { env: { HOME: undefined } });
});

test("a checkout works on another file system", (context) => {
  const free = existsSync(MEMORY) ? statfsSync(MEMORY) : undefined;
  if (free === undefined || free.bavail * free.bsize < COPY_BYTES) context.skip(`${MEMORY} has no room`);
  works(copyOf(MEMORY, "evreg-place-"), {});
});

test("a checkout works for a user unknown to the system, without /dev/shm", (context) => {
  const become = ["setpriv", `--reuid=${UNKNOWN}`, `--regid=${UNKNOWN}`, "--clear-groups"];
  if (!isPossible(become)) context.skip("only root may become another user");
  const checkout = copyOf(tmpdir(), "evreg-place-");
  for (const path of ["", ...readdirSync(dirname(checkout), { recursive: true, encoding: "utf8" })]) {
    lchownSync(join(dirname(checkout), path), UNKNOWN, UNKNOWN);
  }
  const apart = ["unshare", "--mount", "sh", "-c", `umount ${MEMORY}; exec "$@"`, "sh"];
  // Npm asks for a home, and such a user has none but this.
  works(checkout, {
    through: [...(isPossible(apart) ? apart : []), ...become],
    env: { HOME: dirname(checkout), SHELL: undefined },
  });
});
