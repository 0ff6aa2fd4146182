import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An attempt that came for a subscription. */
export interface Arrival {
  readonly event: number;
  readonly attempt: number;
  readonly atMs: number;
  /** The second of `webhook-timestamp`, which is that of the attempt's beginning, by the clock of the database. */
  readonly beganS: number;
  /** 0 where the connection was ended without an answer. */
  readonly status: number;
  /** What the handler's address says behind the subscription's name. */
  readonly version: number;
}

export interface Answering {
  /** How an attempt is answered; 0 ends the connection. */
  readonly status: (event: number, attempt: number) => number;
  readonly delayMs: number;
}

/** Takes what is sent to `/NAME/VERSION`, and notes each attempt with its time. */
export class ChaosReceiver {
  readonly #arrivals = new Map<string, Arrival[]>();
  readonly #answering = new Map<string, Answering>();
  readonly #server = createServer((request, response) => this.#take(request, response));
  #url = "";

  async listen(): Promise<void> {
    this.#server.keepAliveTimeout = 60_000;
    this.#server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 });
    await new Promise((resolve) => this.#server.once("listening", resolve));
    this.#url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The handler of a subscription. */
  handler(name: string, version: number): string {
    return `${this.#url}/${name}/${version}`;
  }

  answers(name: string, answering: Answering): void {
    this.#answering.set(name, answering);
  }

  /** In the order in which they came. */
  of(name: string): Arrival[] {
    let arrivals = this.#arrivals.get(name);
    if (arrivals === undefined) this.#arrivals.set(name, (arrivals = []));
    return arrivals;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const atMs = Date.now();
    request.on("error", () => undefined);
    request.resume();
    request.on("end", () => this.#note(request, response, atMs));
  }

  #note({ url = "", headers, socket }: IncomingMessage, response: ServerResponse, atMs: number): void {
    const [, name = "", version] = url.split("/");
    const [event = 0, attempt = 0] = String(headers["x-evreg-delivery"]).split("_").map(Number);
    const { status: statusOf, delayMs } = this.#answering.get(name) ?? ALWAYS;
    const status = statusOf(event, attempt);
    const beganS = Number(headers["webhook-timestamp"]);
    this.of(name).push({ event, attempt, atMs, beganS, status, version: Number(version) });
    if (status === 0) {
      socket.resetAndDestroy();
      return;
    }
    const answer = (): void => void response.writeHead(status).end();
    if (delayMs === 0) answer();
    else setTimeout(answer, delayMs);
  }
}

const ALWAYS: Answering = { status: () => 200, delayMs: 0 };
