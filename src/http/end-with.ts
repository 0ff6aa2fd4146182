import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";

/** How long a peer may take to read a connection's last words before the connection is cut. */
const LINGER_MS = 2_000;

const ending = new WeakSet<Duplex>();

/**
 * Sends a connection's last words and ends it: once the peer has closed its side too, or after a short wait. What the
 * peer still sends is read away in between, as a close with unread bytes would reset the connection and could take the
 * words from the peer (RFC 9112, 9.6).
 */
export function endWith(socket: Duplex, text: string, clock: Clock): void {
  // Node takes its own listener off a `CONNECT` socket, and a peer that resets would then end the process.
  socket.on("error", ignore);
  if (socket.destroyed || ending.has(socket)) return;
  ending.add(socket);
  socket.once(
    "close",
    clock.setTimer(() => socket.destroy(), LINGER_MS),
  );
  socket.end(text);
  socket.resume();
}

/** Whether its last words were said. Nothing that still arrives on it may be acted on: the peer was told that it failed. */
export function isEnding(socket: Duplex): boolean {
  return ending.has(socket);
}

function ignore(): void {}
