import type { Evreg } from "../evreg.ts";
import { serveCommand } from "./next-command.ts";
import { note } from "./output.ts";

/**
 * For what was put into a folder without a server: it is safe there, and goes nowhere yet.
 * @param what the sentence's subject, such as `Its deliveries`
 * @param isWaiting asked only where no engine runs
 */
export async function tellWhenWaiting(
  evreg: Evreg,
  what: string,
  isWaiting: () => boolean | Promise<boolean>,
): Promise<void> {
  const health = await evreg.health().catch(() => undefined);
  if (health?.data.engine !== "stopped" || !(await isWaiting())) return;
  note(`${what} wait for a server on this data folder: ${serveCommand()}`);
}
