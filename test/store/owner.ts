import { randomUUID } from "node:crypto";
import type { Owner } from "../../src/runtime/owner-file.ts";

export function testOwner(command = "serve"): Owner {
  return { pid: process.pid, command, instance: randomUUID(), started_at: "2026-03-01T12:00:00.000Z" };
}
