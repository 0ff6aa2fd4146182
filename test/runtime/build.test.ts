import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { buildOf } from "../../bin/bundling.ts";
import { versionText } from "../../src/runtime/build.ts";
import { temporaryFolder } from "../support/program.ts";

const place = temporaryFolder();
afterAll(() => place.remove());

const COMMITTED = "2026-11-23T20:53:25Z";
const hasGit = spawnSync("git", ["--version"]).status === 0;

function git(...words: string[]): string {
  const who = {
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@b",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@b",
  };
  const env = { ...process.env, ...who, GIT_COMMITTER_DATE: COMMITTED };
  return execFileSync("git", ["-C", place.path, ...words], { encoding: "utf8", env }).trim();
}

test.skipIf(!hasGit)("a build is the commit of its own checkout, with the commit's date", () => {
  expect(buildOf(place.path)).toBeUndefined();
  writeFileSync(join(place.path, "file"), "one");
  mkdirSync(join(place.path, "vendored"));
  git("init", "--quiet");
  git("add", "file");
  git("commit", "--quiet", "--message", "one");
  const commit = git("rev-parse", "HEAD").slice(0, 12);
  expect(buildOf(place.path)).toEqual({ commit, date: COMMITTED });
  expect(buildOf(join(place.path, "vendored")), "among other files of a checkout").toBeUndefined();
  writeFileSync(join(place.path, "file"), "two");
  expect(buildOf(place.path)).toEqual({ commit: `${commit}-modified`, date: COMMITTED });
});

test("a version is shown with its build, where that is known", () => {
  expect(versionText("0.3.0", { commit: "3f2a91c0d4e5", date: COMMITTED })).toBe(
    `0.3.0 (3f2a91c0d4e5, ${COMMITTED})`,
  );
  expect(versionText("0.3.0", undefined)).toBe("0.3.0");
});
