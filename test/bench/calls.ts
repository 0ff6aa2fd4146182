/** What a process of the benchmark can be asked, by name. One plain value goes in and one comes back. */
export type CallTable = Record<string, (input: never) => unknown>;

export interface CallMessage {
  readonly id: number;
  readonly call: string;
  readonly input: unknown;
}

export type AnswerMessage =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

/** Answers the coordinator's calls, several at once, until it goes away; then this process ends as well. */
export function answerCalls(calls: CallTable): void {
  process.on("message", (message: CallMessage) => {
    void answer(calls, message).then((sent) => process.send?.(sent));
  });
  process.on("disconnect", () => process.exit(0));
}

async function answer(calls: CallTable, { id, call, input }: CallMessage): Promise<AnswerMessage> {
  try {
    const run = calls[call];
    if (run === undefined) throw new Error(`There is no call ${call}.`);
    return { id, value: await run(input as never) };
  } catch (error) {
    return { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
