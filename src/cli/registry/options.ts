import type { Output } from "../output.ts";

export interface ApplyOptions {
  readonly dryRun: boolean;
  /** With `dryRun`: differences have an exit code of their own. */
  readonly exitCode: boolean;
  readonly prune: boolean;
  /** Deletes without asking. */
  readonly yes: boolean;
  /** Applies schemas that break someone as well. */
  readonly force: boolean;
  readonly keepGoing: boolean;
  /** Where secrets of created subscriptions go; `-` is stdout. */
  readonly secretsFile: string | undefined;
  readonly output: Output;
}
