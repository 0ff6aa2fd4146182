import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endOthers, killAll, startChild, type Child } from "./child.ts";
import type { FillCalls } from "./fill.ts";
import type { LoadCalls } from "./load.ts";
import { memoryOf, Rests } from "./memory.ts";
import type { Vitals } from "./probe.ts";
import type { ReceiverCalls } from "./receiver.ts";
import type { Row } from "./row.ts";
import { register, type Seeded, seedPlace } from "./seeded-place.ts";
import { type BenchServer, type ServerPlace, startServer } from "./server.ts";

export interface Scenario {
  readonly name: string;
  readonly summary: string;
  /** Whether it runs only where `--only` names it. */
  readonly isOnlyByName?: boolean;
  run(rig: Rig): Promise<readonly Row[]>;
}

/** What a server was like while a scenario ran on it. */
export interface Observation extends Vitals {
  readonly scenario: string;
  /** Which server: `empty`, `2 million` … */
  readonly on: string;
  /** The most since the server started, which was for this scenario. */
  readonly peakMb: number;
  /** How many it took and delivered, where that is what it was doing. */
  readonly events: number | undefined;
}

export interface RigOptions {
  readonly rounds: number;
  /** Whether what is measured on an empty file is measured on the filled one as well. */
  readonly history: boolean;
  /** How many events the filled one has. */
  readonly historyEvents: number;
  /** Whether servers are watched after their load until they have given memory back. */
  readonly idle: boolean;
  readonly say: (what: string) => void;
}

const CONFIG = `delivery:
  allowHttp: true
  allowNetworks: ["127.0.0.0/8"]
`;

/** The machinery of one run: its temporary folder, its processes, and what was seen of them. */
export class Rig {
  readonly options: RigOptions;
  readonly observations: Observation[] = [];
  readonly rests = new Rests();
  /** What was wrong beyond figures: answers that were not true, events that were lost. */
  readonly failures: string[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), "evreg-bench-"));
  readonly #load = startChild<LoadCalls>("load.ts");
  readonly #receiver = startChild<ReceiverCalls>("receiver.ts");
  #receiverPort: Promise<number> | undefined;
  #seeded: Promise<Seeded> | undefined;
  #folders = 0;

  constructor(options: RigOptions) {
    this.options = options;
    mkdirSync(this.compileCache);
    writeFileSync(this.configFile, CONFIG);
  }

  get load(): Child<LoadCalls> {
    return this.#load;
  }

  get receiver(): Child<ReceiverCalls> {
    return this.#receiver;
  }

  get configFile(): string {
    return join(this.#folder, "config.yaml");
  }

  get compileCache(): string {
    return join(this.#folder, "compiled");
  }

  receiverPort(): Promise<number> {
    this.#receiverPort ??= this.#receiver.call("listen");
    return this.#receiverPort;
  }

  /** An address at the receiver; `fast` paths are answered at once, `slow/500` after 500 ms, `hang` paths never. */
  async handler(kind: "fast" | "hang" | `slow/${number}`, name: string): Promise<string> {
    return `http://127.0.0.1:${await this.receiverPort()}/${kind}/${name}`;
  }

  /** Addresses at the receiver that never answer. */
  hungHandlers(count: number): Promise<string[]> {
    return Promise.all(Array.from({ length: count }, (_, number) => this.handler("hang", String(number))));
  }

  /** An empty folder, removed at the end of the run. */
  newFolder(): string {
    this.#folders += 1;
    const folder = join(this.#folder, `data-${this.#folders}`);
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  }

  /** A data folder in which nothing is yet. */
  newPlace(): ServerPlace {
    const folder = this.newFolder();
    return {
      folder,
      configFile: this.configFile,
      logFile: `${folder}.log`,
      compileCache: this.compileCache,
    };
  }

  /** What the report calls the filled file. */
  get historyName(): string {
    return `${this.options.historyEvents / 1_000_000} million`;
  }

  /** The folder with the history, made at the first call. */
  seeded(): Promise<Seeded> {
    this.#seeded ??= (async () => {
      this.options.say(`filling a data folder with ${this.historyName} events`);
      const handler = await this.handler("fast", "orders");
      return seedPlace(this.newPlace(), handler, this.options.historyEvents);
    })();
    return this.#seeded;
  }

  /** Does the work in each round; answers what came of each. */
  async inRounds<T>(name: string, work: (round: number) => Promise<T>): Promise<T[]> {
    const results: T[] = [];
    for (let round = 0; round < this.options.rounds; round += 1) {
      this.options.say(`${name}, round ${round + 1}`);
      results.push(await work(round));
    }
    return results;
  }

  /** Publishes events of `WAITING_ACTION` where no server is, for one subscription to each of the handlers. */
  async fill({ folder, database }: ServerPlace, handlers: readonly string[], events: number): Promise<void> {
    const filler = startChild<FillCalls>("fill.ts");
    await filler.call("fill", { folder, database, handlers, events });
    await filler.end("SIGTERM");
  }

  /** A new server on a new folder, with the actions and subscriptions that the scenarios publish to, for `handler`. */
  async emptyServer(handler?: string): Promise<BenchServer> {
    const server = await startServer(this.newPlace());
    await register(server, handler ?? (await this.handler("fast", "orders")));
    return server;
  }

  /** The servers a scenario is measured on, by their names in the report. */
  async targets(): Promise<ReadonlyMap<string, BenchServer>> {
    const targets = new Map([["empty", await this.emptyServer()]]);
    if (this.options.history) targets.set(this.historyName, await startServer((await this.seeded()).place));
    return targets;
  }

  /**
   * Does `work` and notes what it did to the server's memory and main thread.
   * @param eventsOf how many events the work was, for the processor time of each
   */
  async observe<T>(
    scenario: string,
    on: string,
    server: BenchServer,
    work: () => Promise<T>,
    eventsOf?: (result: T) => number,
  ): Promise<T> {
    await server.child.call("begin");
    let events: number | undefined;
    try {
      const result = await work();
      events = eventsOf?.(result);
      return result;
    } finally {
      const peakMb = memoryOf(server.child.pid)?.peakMb;
      const vitals = await server.child.call("end").catch(() => undefined);
      if (vitals !== undefined && peakMb !== undefined) {
        this.observations.push({ scenario, on, peakMb, events, ...vitals });
      }
    }
  }

  /**
   * Stops a server whose scenario is over. One on a folder of its own may rest first, while the next scenario runs: it
   * does nothing but hold memory.
   */
  async retire(scenario: string, on: string, server: BenchServer): Promise<void> {
    const isShared = server.place === (await this.#seeded)?.place;
    if (isShared || !this.options.idle) await server.stop();
    else this.rests.begin(scenario, on, server);
  }

  /** Ends the processes that a failed scenario has left, so that the next one finds its folder free. */
  async clear(): Promise<void> {
    await endOthers([this.#load.process, this.#receiver.process]);
  }

  /** Ends all processes at once and removes the folder; also in the middle of anything. */
  close(): void {
    killAll();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}
