import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { HOST, TARGETS } from "../../bin/exe/packages.ts";
import {
  type Line,
  type Outcome,
  type RunningProgram,
  runProgram,
  startProgram,
  temporaryFolder,
} from "../support/program.ts";

/** A copy of the executable, alone in a folder, that is started with nothing in its environment but what a test gives. */
export interface Alone {
  /** Where the copy lies. */
  readonly executable: string;
  /** Empty at the start of each test. */
  readonly folder: string;
  /** The data folder of the test. */
  readonly data: string;
  run(
    line: Line,
    env?: Record<string, string>,
    input?: string,
    through?: readonly string[],
  ): Promise<Outcome>;
  serve(env?: Record<string, string>, through?: readonly string[]): Promise<RunningProgram>;
}

/** What is tried of it is what Linux shows: mounts, `/proc`, users. */
const isTried = TARGETS[HOST]?.platform === "linux";

const nothingBut = (env: Record<string, string>): string[] => [
  "/usr/bin/env",
  "-i",
  "PATH=",
  ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
];

export function useAlone(): Alone {
  const place = temporaryFolder();
  const executable = join(place.path, "evreg");
  let scratch: ReturnType<typeof temporaryFolder>;
  beforeAll(() => {
    if (isTried) copyFileSync(process.env["TEST_EXECUTABLE"] ?? "dist-exe/evreg", executable);
  });
  afterAll(() => place.remove());
  beforeEach(({ skip }) => {
    scratch = temporaryFolder();
    mkdirSync(join(scratch.path, "data"));
    skip(!isTried, `no executable is tried on ${HOST}`);
  });
  afterEach(() => scratch.remove());
  return {
    executable,
    get folder() {
      return scratch.path;
    },
    get data() {
      return join(scratch.path, "data");
    },
    run: (line, env = {}, input = "", through = []) => {
      const all = [...through, ...nothingBut(env)];
      return runProgram(line, { cwd: scratch.path, input, through: all, as: [executable] });
    },
    serve: (env = {}, through = []) =>
      startProgram(join(scratch.path, "data"), ["--dev"], {}, [...through, ...nothingBut(env)], [executable]),
  };
}
