import { appendFileSync, closeSync, fchmodSync, fstatSync, openSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import type { SubscriptionWithSecret } from "../../domain/subscription.ts";
import { syncFile } from "../../runtime/replace-file.ts";
import { nextCommand } from "../next-command.ts";
import { writeOut, type Output } from "../output.ts";
import { printableLine } from "../printable.ts";
import { usage } from "../usage.ts";
import { nameOf } from "./declared.ts";
import { SUBSCRIPTION, type Values } from "./members.ts";

/**
 * Where the secrets of created subscriptions go. No other answer holds one, so each is on the disk before anything else
 * happens: what a kill or a cut of the power loses is at most the few under way.
 */
export class SecretsOut {
  /** By the rowid; those that the document of `--json` is to hold. */
  readonly shown = new Map<number, string>();
  readonly #output: Output;
  readonly #path: string;
  readonly #file: number | undefined;

  /**
   * @param path of a file that takes one a line, readable by its owner only, what is in it stays; `-` is stdout
   * @throws `usage` when it cannot be opened
   */
  constructor(path: string, output: Output) {
    this.#output = output;
    this.#path = path;
    if (path === "-") return;
    try {
      this.#file = openSync(path, "a", 0o600);
      // A device such as /dev/null has no mode to set.
      if (fstatSync(this.#file).isFile()) fchmodSync(this.#file, 0o600);
    } catch (error) {
      const [why] = (error as Error).message.split(", ");
      throw usage(`--secrets-file: ${path} cannot be written (${why}). Nothing was changed.`);
    }
  }

  /** @throws `unavailable` when it cannot be written, as then no further one could be */
  async add(created: SubscriptionWithSecret): Promise<void> {
    const { rowid } = created;
    try {
      await this.#write(created);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      throw new EvregError(
        "unavailable",
        `It was created, but its secret could not be written (${code ?? message}). Make another: ${nextCommand(`subscriptions rotate-secret ${rowid}`)}`,
        {},
        { cause: error },
      );
    }
  }

  async #write(created: SubscriptionWithSecret): Promise<void> {
    const { rowid, application, subscription, action, secret } = created;
    if (this.#file !== undefined) {
      appendFileSync(this.#file, `${JSON.stringify({ rowid, application, subscription, action, secret })}\n`);
      syncFile(this.#file, this.#path);
    } else if (this.#output.format === "table") {
      const name = nameOf(SUBSCRIPTION, created as unknown as Values);
      await writeOut(`secret of ${printableLine(name)}: ${secret}\n`);
    } else this.shown.set(rowid, secret);
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }
}
