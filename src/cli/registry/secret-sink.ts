import { appendFileSync, closeSync, fchmodSync, fstatSync, openSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import type { SubscriptionWithSecret } from "../../domain/subscription.ts";
import { mustNotBeDataFile } from "../../runtime/data-files.ts";
import { syncFile } from "../../runtime/files.ts";
import { systemReason } from "../io/files.ts";
import { type Output, writeOut } from "../io/output.ts";
import { escapeControl } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import { usageError } from "../usage-errors.ts";
import { nameOf } from "./declarations.ts";
import { SUBSCRIPTION, type Values } from "./members.ts";

/**
 * Where the secrets of created subscriptions go. No other answer holds one, so each is written to the disk at once: a kill
 * or a power cut loses at most the one under way.
 */
export class SecretSink {
  readonly #output: Output;
  readonly #path: string;
  readonly #file: number | undefined;

  /**
   * @param path of a file that gets one a line, readable by its owner only; `-` is stdout, whose JSON document has them
   * @throws `usage` when it cannot be opened
   */
  constructor(path: string, output: Output) {
    this.#output = output;
    this.#path = path;
    if (path === "-") return;
    mustNotBeDataFile(path);
    try {
      this.#file = openSync(path, "a", 0o600);
      // A device such as /dev/null has no mode to set.
      if (fstatSync(this.#file).isFile()) fchmodSync(this.#file, 0o600);
    } catch (error) {
      throw usageError(
        `--secrets-file: ${path} cannot be written (${systemReason(error)}). Nothing was changed.`,
      );
    }
  }

  /** @throws `unavailable` when it cannot be written, as then no further one could be */
  async add(created: SubscriptionWithSecret): Promise<void> {
    const { rowid, application, subscription, action, secret } = created;
    try {
      if (this.#file !== undefined) {
        const line = JSON.stringify({ rowid, application, subscription, action, secret });
        appendFileSync(this.#file, `${line}\n`);
        syncFile(this.#file, this.#path);
      } else if (this.#output.format === "table") {
        const name = nameOf(SUBSCRIPTION, created as unknown as Values);
        await writeOut(`secret of ${escapeControl(name)}: ${secret}\n`);
      }
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

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }
}
