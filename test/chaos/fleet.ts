import type { ChildProcess } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Agent, request } from "undici";
import { freePort } from "../support/free-port.ts";
import { launchProgram } from "../support/program.ts";
import { KEPT_IN } from "./options.ts";

const RESTART_MS = 200;
const REQUEST_MS = 6_000;
/** What a start says that the database was not there for, or that stood still in the midst of a transaction. */
const AWAY = /Error: .*(?:the database (?:cannot be reached|is being shut down)|a transaction stood still)/;

export interface Answer {
  /** 0 where none came. */
  readonly status: number;
  readonly body: unknown;
}

interface Member {
  readonly name: string;
  readonly folder: string;
  readonly port: number;
  readonly env: Record<string, string>;
  child: ChildProcess | undefined;
  /** Somebody kills it, so its end is no finding. */
  isKilled: boolean;
  isStopped: boolean;
  isReady: boolean;
}

/** Sets the clock of a process ahead. */
function shiftedClock(byMs: number): string {
  const code = `const Real=Date,now=()=>Real.now()+(${byMs});globalThis.Date=class Date extends Real{constructor(...a){if(a.length)super(...a);else super(now())}static now(){return now()}}`;
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
}

/** Nodes as processes of the built program, each started again when it ends, as a supervisor of the system does. */
export class Fleet {
  readonly members: Member[] = [];
  readonly token: string;
  /** How often each status was answered. */
  readonly statuses = new Map<number, number>();
  /** What was answered with 500, and what ended a node by itself. */
  readonly findings: string[] = [];
  readonly #agent = new Agent({ connections: 256, pipelining: 1, keepAliveTimeout: 4_000 });
  #isEnding = false;

  constructor(token: string) {
    this.token = token;
  }

  /** @param aheadMs what its clock is ahead of that of the machine */
  async add(folder: string, database: string, aheadMs: number): Promise<void> {
    const env = {
      EVREG_DATABASE_URL: database,
      EVREG_BOOTSTRAP_TOKEN: this.token,
      EVREG_DELIVERY_ALLOW_HTTP: "true",
      EVREG_DELIVERY_ALLOW_NETWORKS: "127.0.0.0/8",
      EVREG_LOG_FORMAT: "json",
      NODE_OPTIONS: shiftedClock(aheadMs),
    };
    const name = `node ${this.members.length + 1}`;
    const port = await freePort();
    const member = { name, folder, port, env, child: undefined, ...IDLE };
    this.members.push(member);
    void this.#keepRunning(member);
  }

  get readyCount(): number {
    return this.members.filter(({ isReady }) => isReady).length;
  }

  kill(member: Member): void {
    member.isKilled = true;
    member.child?.kill("SIGKILL");
  }

  stop(member: Member): void {
    member.isStopped = true;
    member.child?.kill("SIGSTOP");
  }

  goOn(member: Member): void {
    member.child?.kill("SIGCONT");
    member.isStopped = false;
  }

  /** Stops all in order. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(
      this.members.map(async ({ child }) => {
        if (child === undefined || child.exitCode !== null) return;
        const ended = new Promise((resolve) => child.once("close", resolve));
        child.kill("SIGTERM");
        await Promise.race([ended, wait(20_000, undefined, { ref: false })]);
        child.kill("SIGKILL");
      }),
    );
    await this.#agent.destroy();
  }

  url(member: Member): string {
    return `http://127.0.0.1:${member.port}`;
  }

  async ask(
    member: Member,
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
    timeoutMs = REQUEST_MS,
  ): Promise<Answer> {
    try {
      const answer = await request(this.url(member) + path, {
        method,
        dispatcher: this.#agent,
        headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json", ...headers },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      });
      const text = await answer.body.text();
      return this.#noted(member, `${method} ${path}`, answer.statusCode, text);
    } catch {
      return this.#noted(member, path, 0, "null");
    }
  }

  /** Asks one node after the other until one answers with what is final. */
  async askUntil(
    isFinal: (answer: Answer) => boolean,
    ...[method, path, body, headers, timeoutMs]: Parameters<Fleet["ask"]> extends [unknown, ...infer Rest]
      ? Rest
      : never
  ): Promise<Answer> {
    for (;;) {
      const answer = await this.ask(this.anyMember(), method, path, body, headers, timeoutMs);
      if (isFinal(answer)) return answer;
      await wait(RESTART_MS);
    }
  }

  anyMember(): Member {
    return this.members[Math.floor(Math.random() * this.members.length)]!;
  }

  #noted(member: Member, what: string, status: number, text: string): Answer {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status === 500) this.findings.push(`${member.name} answered ${what} with 500: ${text}`);
    return { status, body: JSON.parse(text) };
  }

  async #keepRunning(member: Member): Promise<void> {
    while (!this.#isEnding) {
      Object.assign(member, IDLE);
      const launched = launchProgram(member.folder, ["--port", String(member.port)], member.env);
      member.child = launched.child;
      keepOutput(member);
      launched.ready.then(
        () => (member.isReady = true),
        () => undefined,
      );
      const { code, stdout, stderr } = await launched.ended;
      const hadStarted = member.isReady;
      member.isReady = false;
      if (this.#isEnding) return;
      const isRefusedStart = !hadStarted && AWAY.test(stderr);
      if (!member.isKilled && !isRefusedStart) {
        this.findings.push(`${member.name} ended by itself with ${code}: ${(stdout + stderr).slice(-2_000)}`);
      }
      if (!member.isKilled) await wait(RESTART_MS);
    }
  }
}

export type { Member };

const IDLE = { isKilled: false, isStopped: false, isReady: false };

function keepOutput({ name, child }: Member): void {
  if (KEPT_IN === undefined) return;
  const file = join(KEPT_IN, `${name.replace(" ", "-")}.log`);
  appendFileSync(file, `--- ${new Date().toISOString()} pid ${child!.pid}\n`);
  for (const stream of [child!.stdout!, child!.stderr!]) {
    stream.on("data", (bytes: Buffer) => appendFileSync(file, bytes));
  }
}
