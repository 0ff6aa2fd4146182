import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** By connection, as a listener for each of many requests on one would have node warn of a leak. */
const pendingOf = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls back once, when the answer is out or its connection gone. The answer's own `close` is not enough: not every
 * version of node emits one for an answer that was still waiting behind others when its connection closed.
 */
export function onceOver(response: ServerResponse, callback: () => void): void {
  const { socket } = response.req;
  if (socket.destroyed || response.destroyed) {
    callback();
    return;
  }
  const pending = pendingOf.get(socket) ?? pendingAt(socket);
  const over = (): void => {
    if (pending.delete(over)) callback();
  };
  pending.add(over);
  response.once("close", over);
}

function pendingAt(socket: Socket): Set<() => void> {
  const pending = new Set<() => void>();
  pendingOf.set(socket, pending);
  socket.once("close", () => {
    for (const over of pending) over();
  });
  return pending;
}
