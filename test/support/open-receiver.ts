import { onTestFinished } from "vitest";
import { type Receiver, startReceiver } from "./receiver.ts";

/** A handler that is closed after the test at the latest. */
export async function openReceiver(options: Parameters<typeof startReceiver>[0] = {}): Promise<Receiver> {
  const receiver = await startReceiver(options);
  onTestFinished(() => receiver.close());
  return receiver;
}
