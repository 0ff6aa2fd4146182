import type { Logger } from "../../src/runtime/logger.ts";

interface KeptLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A log kept in memory. */
export class KeptLog implements Logger {
  readonly isDebugEnabled = true;
  readonly lines: KeptLine[] = [];
  readonly debug = this.#keep("debug");
  readonly info = this.#keep("info");
  readonly warn = this.#keep("warn");
  readonly error = this.#keep("error");

  /** The lines whose message has this text in it. */
  with(text: string): readonly KeptLine[] {
    return this.lines.filter(({ message }) => message.includes(text));
  }

  /** The lines of this level. */
  of(level: KeptLine["level"]): readonly KeptLine[] {
    return this.lines.filter((line) => line.level === level);
  }

  #keep(level: KeptLine["level"]) {
    return (fields: object, message: string): void => {
      this.lines.push({ level, message, fields: { ...fields } });
    };
  }
}
