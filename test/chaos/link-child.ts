import { createServer, type AddressInfo, Socket } from "node:net";

// Links to a port of this machine, in a process of their own: what the test does meanwhile does not slow them down. Arguments: the port,
// and how many links there are. Sends their ports, and takes what becomes of which.

/** `up` forwards; `stalled` takes connections and forwards nothing, as a half-open link does; `cut` ends all of them. */
type LinkState = "up" | "stalled" | "cut";

export interface LinkOrder {
  readonly link: number;
  readonly state: LinkState;
  /** Whether what was stalled is lost with its connections, and does not come late. */
  readonly drops?: boolean;
}

class Pair {
  readonly #near: Socket;
  readonly #far = new Socket();
  readonly #port: number;
  #isConnected = false;

  constructor(near: Socket, port: number, onEnd: () => void) {
    this.#near = near;
    this.#port = port;
    const end = (): void => {
      near.destroy();
      this.#far.destroy();
      onEnd();
    };
    for (const [from, to] of [
      [near, this.#far],
      [this.#far, near],
    ] as const) {
      from.setNoDelay(true);
      from.on("error", end);
      from.on("close", end);
      from.on("data", (bytes: Buffer) => {
        if (!to.write(bytes)) from.pause();
      });
      to.on("drain", () => this.#isUp && from.resume());
    }
    near.pause();
  }

  #isUp = false;

  up(): void {
    this.#isUp = true;
    if (!this.#isConnected) this.#far.connect(this.#port, "127.0.0.1");
    this.#isConnected = true;
    this.#near.resume();
    this.#far.resume();
  }

  stall(): void {
    this.#isUp = false;
    this.#near.pause();
    this.#far.pause();
  }

  cut(): void {
    this.#near.resetAndDestroy();
    this.#far.destroy();
  }
}

class Link {
  #state: LinkState = "up";
  readonly #pairs = new Set<Pair>();

  async listen(port: number): Promise<number> {
    const server = createServer({ pauseOnConnect: true }, (near) => {
      if (this.#state === "cut") {
        near.resetAndDestroy();
        return;
      }
      const pair = new Pair(near, port, () => this.#pairs.delete(pair));
      this.#pairs.add(pair);
      if (this.#state === "up") pair.up();
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    return (server.address() as AddressInfo).port;
  }

  become({ state, drops = false }: LinkOrder): void {
    this.#state = state;
    for (const pair of this.#pairs) {
      if (state === "cut" || drops) pair.cut();
      else if (state === "stalled") pair.stall();
      else pair.up();
    }
  }
}

const [port = 0, count = 0] = process.argv.slice(2).map(Number);
const links = Array.from({ length: count }, () => new Link());
process.on("message", (order: LinkOrder) => links[order.link]!.become(order));
process.on("disconnect", () => process.exit());
process.send!(await Promise.all(links.map((link) => link.listen(port))));
