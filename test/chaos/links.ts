import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { LinkOrder } from "./link-child.ts";

export interface Links {
  /** The port of each link. */
  readonly ports: readonly number[];
  become(order: LinkOrder): void;
  close(): void;
}

/** Opens links to a port, which can be cut, stalled and healed. */
export async function openLinks(port: number, count: number): Promise<Links> {
  const child = fork(
    fileURLToPath(new URL("link-child.ts", import.meta.url)),
    [String(port), String(count)],
    {
      execArgv: ["--disable-warning=ExperimentalWarning"],
    },
  );
  const [ports] = (await once(child, "message")) as [number[]];
  return {
    ports,
    become: (order) => void child.send(order),
    close: () => void child.kill(),
  };
}
