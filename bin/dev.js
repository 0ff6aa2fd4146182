#!/usr/bin/env node
// The program straight from src/, without a build: Node strips the types.
import "./node-guard.js";
import "./unknown-account.js";
import { fileURLToPath } from "node:url";

const { main } = await import("../src/cli/main.ts");
await main(process.argv.slice(2), { root: fileURLToPath(new URL("..", import.meta.url)), fromSource: true });
