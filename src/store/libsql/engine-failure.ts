/** What the driver throws, with the engine's extended code and its number, whose low byte is the code itself. */
interface DriverError extends Error {
  readonly code: string;
  readonly rawCode: number;
}

/** The names of the codes that something is made of here. */
const CODES: Readonly<Record<number, string>> = {
  1: "SQLITE_ERROR",
  5: "SQLITE_BUSY",
  6: "SQLITE_LOCKED",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  13: "SQLITE_FULL",
  18: "SQLITE_TOOBIG",
  19: "SQLITE_CONSTRAINT",
  20: "SQLITE_MISMATCH",
  25: "SQLITE_RANGE",
  26: "SQLITE_NOTADB",
};

/**
 * What a failure means for the connection it was seen on.
 * - `full`: nothing was committed; writing can go on once there is room.
 * - `in_use`: another connection holds the file.
 * - `replace`: nothing was committed, but this connection is not to be trusted with another write.
 * - `fatal`: what is in the file is not known (a commit whose end is unknown, a damaged file); only a new start can tell.
 */
export type FailureKind = "full" | "in_use" | "replace" | "fatal";

/** The engine itself failed, not the request. The transaction it came up in is over. */
export class EngineFailure extends Error {
  override readonly name = "EngineFailure";
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** Failures of one statement that leave the connection as good as before: a constraint, a wrong type, a slip in SQL. */
const STATEMENT_CODES = new Set([
  "SQLITE_ERROR",
  "SQLITE_CONSTRAINT",
  "SQLITE_MISMATCH",
  "SQLITE_TOOBIG",
  "SQLITE_RANGE",
]);

/** Codes with which the engine says that it did not commit. */
const NOT_COMMITTED_CODES = new Set(["SQLITE_FULL", "SQLITE_BUSY"]);

/**
 * Tells an engine's failure from a request's.
 * @param step where it came up: a failed `commit` with an unclear answer leaves the outcome unknown
 * @returns the failure, or `undefined` when only the statement failed
 */
export function engineFailure(
  error: unknown,
  step: "statement" | "begin" | "commit",
): EngineFailure | undefined {
  if (error instanceof EngineFailure) return error;
  if (!isDriverError(error)) return undefined;
  const code = CODES[error.rawCode & 0xff] ?? error.code;
  const say = `${error.code}: ${error.message}`;
  const because = { cause: error };
  if (step === "commit" && !NOT_COMMITTED_CODES.has(code)) {
    return new EngineFailure(
      "fatal",
      `the file system failed while a commit was made durable (${say})`,
      because,
    );
  }
  if (code === "SQLITE_CORRUPT" || code === "SQLITE_NOTADB") {
    // The engine gives a read that the disk failed (EIO) the same code.
    return new EngineFailure("fatal", `the disk failed to read the data, or it is damaged (${say})`, because);
  }
  if (code === "SQLITE_FULL") return new EngineFailure("full", "the disk is full", because);
  if (code === "SQLITE_BUSY" || code === "SQLITE_LOCKED") {
    return new EngineFailure("in_use", `the data file is locked by another connection (${say})`, because);
  }
  if (step === "statement" && STATEMENT_CODES.has(code)) return undefined;
  if (code === "SQLITE_IOERR") {
    return new EngineFailure("replace", `the disk failed to read or write the data (${say})`, because);
  }
  return new EngineFailure("replace", `the database engine failed (${say})`, because);
}

function isDriverError(error: unknown): error is DriverError {
  return error instanceof Error && "rawCode" in error && typeof error.rawCode === "number";
}
