export interface Health {
  readonly status: "ok" | "unavailable";
  readonly version: string;
  /** Why it is unavailable; absent while it is ok. */
  readonly reason?: string;
  readonly store: "ok" | "unavailable";
  /** `failing`: it runs, and has not been able to read what is due for some time. */
  readonly engine: "running" | "failing" | "stopped";
  /** Made anew at each start: tells a command that the server it found is the one that wrote the data folder's owner file. */
  readonly instance: string;
}
