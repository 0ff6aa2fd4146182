import { connect, type Socket } from "node:net";
import { HttpReader } from "./http-reader.ts";
import { ID_MARK, type RequestSpec } from "./workload.ts";

export interface LoadAnswer {
  readonly status: number;
  /** Kept when asked for, and for every status that was not expected. */
  readonly body: Buffer | undefined;
}

/** What every load has. */
export interface LoadTarget {
  readonly port: number;
  readonly token?: string;
  readonly connections: number;
  /** Sent before counting begins. */
  readonly warmUpMs: number;
  readonly durationMs: number;
  /** Any other status fails the run; without it, any but that of a read or of a create. */
  readonly expect?: number | readonly number[];
}

/** One keep-alive connection with at most one request under way. */
interface LoadConnection {
  readonly socket: Socket;
  readonly requests: readonly RequestBytes[];
  onAnswer: ((answer: LoadAnswer) => void) | undefined;
}

/** Connections of which the first failure, or the first unexpected status, ends the run. */
export interface LoadConnections {
  readonly all: readonly LoadConnection[];
  /** @param which of the requests, which are numbered as they are sent */
  send(connection: LoadConnection, which: number, onAnswer: (answer: LoadAnswer) => void): void;
  /** Waits until `over` resolves, and closes them. */
  during(over: Promise<unknown>): Promise<void>;
}

export async function openConnections(
  { port, token, connections, expect }: LoadTarget,
  requests: readonly RequestSpec[],
  keepsBodies = false,
): Promise<LoadConnections> {
  const failed = Promise.withResolvers<never>();
  // It may fail before anybody waits for it.
  failed.promise.catch(() => undefined);
  const expected = new Set([expect ?? (requests[0]?.body === undefined ? 200 : 201)].flat());
  const opening = Array.from({ length: connections }, async (): Promise<LoadConnection> => {
    const bytes = requests.map((request) => new RequestBytes(request, `127.0.0.1:${port}`, token));
    return { socket: await connected(port), requests: bytes, onAnswer: undefined };
  });
  const all = await Promise.all(opening);
  for (const connection of all) {
    const { socket } = connection;
    const reader = new HttpReader({
      keepsBody: (head) => keepsBodies || !expected.has(statusOf(head)),
      onMessage: (head, body) => {
        const { onAnswer } = connection;
        connection.onAnswer = undefined;
        if (onAnswer !== undefined) onAnswer({ status: statusOf(head), body });
        else failed.reject(new Error(`An answer ${statusOf(head)} came that nobody asked for.`));
      },
    });
    socket.on("data", (chunk: Buffer) => reader.push(chunk));
    socket.on("error", failed.reject);
    socket.on("close", () => {
      if (connection.onAnswer !== undefined) {
        failed.reject(new Error("The connection was closed before an answer came."));
      }
    });
  }
  let nextNumber = 1;
  return {
    all,
    send(connection, which, onAnswer) {
      const { bytes, path } = connection.requests[which]!;
      nextNumber = connection.requests[which]!.number(nextNumber);
      connection.onAnswer = (answer) => {
        const { status, body } = answer;
        if (expected.has(status)) onAnswer(answer);
        else failed.reject(new Error(`${path} was answered with ${status}: ${body?.toString()}`));
      };
      connection.socket.write(bytes);
    },
    async during(over) {
      try {
        await Promise.race([over, failed.promise]);
      } finally {
        for (const connection of all) {
          connection.onAnswer = undefined;
          connection.socket.destroy();
        }
      }
    },
  };
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(socket));
    socket.once("error", reject);
  });
}

/** From `HTTP/1.1 201 …`. */
function statusOf(head: string): number {
  return Number(head.slice(9, 12));
}

const ZERO = "0".charCodeAt(0);

/** The bytes of a request, made once and changed in place, so that building them costs the load next to nothing. */
class RequestBytes {
  readonly bytes: Buffer;
  readonly path: string;
  readonly #marks: number[] = [];

  constructor({ path, body }: RequestSpec, host: string, token?: string) {
    this.path = path;
    const lines = [`${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1`, `Host: ${host}`];
    if (token !== undefined) lines.push(`Authorization: Bearer ${token}`);
    if (body !== undefined) {
      lines.push("Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`);
    }
    this.bytes = Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body ?? ""}`);
    for (let at = this.bytes.indexOf(ID_MARK); at !== -1; at = this.bytes.indexOf(ID_MARK, at + 1)) {
      this.#marks.push(at);
    }
  }

  /** Writes numbers from `first` on into the marks; answers the first one not used. */
  number(first: number): number {
    let next = first;
    for (const at of this.#marks) {
      let rest = next;
      for (let digit = at + ID_MARK.length - 1; digit >= at; digit -= 1) {
        this.bytes[digit] = ZERO + (rest % 10);
        rest = Math.floor(rest / 10);
      }
      next += 1;
    }
    return next;
  }
}
