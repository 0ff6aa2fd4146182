#!/usr/bin/env node
// The program straight from src/, without a build: Node strips the types.
import "./node-guard.js";
import "./unknown-account.js";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Plugin } from "@oclif/core";

const root = fileURLToPath(new URL("..", import.meta.url));
const { main } = await import("../src/cli/main.ts");
await main(process.argv.slice(2), async () => {
  const pjson = JSON.parse(readFileSync(`${root}/package.json`, "utf8"));
  pjson.oclif.commands.target = "./src/commands/all.ts";
  const plugin = new Plugin({ root, pjson, isRoot: true, ignoreManifest: true });
  await plugin.load();
  return plugin;
});
