import { EvregError, messageOf } from "../../domain/error.ts";
import { EngineFailure, type FailureKind } from "../sql/sql.ts";

/** What the database answers, with its code (SQLSTATE). */
interface DatabaseError extends Error {
  readonly code: string;
  readonly severity: string;
}

const TRY_AGAIN_MS = 1_000;

const POOLED =
  "a pooler gives each transaction another connection, so that prepared statements are lost; give the address of the database with prepare=false in it";

/** What is said of codes, and of the classes that they begin with. */
const SAYINGS: readonly (readonly [code: string, kind: FailureKind, saying: string])[] = [
  ["53100", "full", "the disk of the database is full"],
  ["53300", "away", "the database has no connection left; raise max_connections, or use a pooler"],
  ["53", "away", "the database is out of resources"],
  ["57014", "away", "a statement took too long and was cancelled"],
  ["57", "away", "the database is being shut down or restarted"],
  ["25P03", "away", "a transaction stood still for too long and was undone"],
  ["25006", "away", "the database takes no writes: it is a standby, or read-only"],
  ["08", "away", "the connection to the database was lost"],
  ["40", "away", "the database gave up a transaction for another one"],
  ["55P03", "away", "another transaction holds what is to be written"],
  ["28P01", "refused", "the database refuses the password"],
  ["28", "refused", "the database refuses the user"],
  ["26000", "refused", POOLED],
  ["42P05", "refused", POOLED],
  ["3D000", "refused", "there is no such database"],
  [
    "42501",
    "refused",
    "the database user lacks a permission; it must own the schema evreg, or be allowed to create it",
  ],
  ["XX001", "damaged", "the database has found damaged data"],
  ["XX002", "damaged", "the database has found a damaged index"],
  ["58", "away", "the database's system failed"],
  ["XX", "failed", "the database failed"],
];

/**
 * Tells a failure of the database, or of the way to it, from that of one statement or call.
 * @returns `error` itself where only the statement or the call failed
 */
export function databaseFailure(error: unknown): unknown {
  if (error instanceof EngineFailure || error instanceof EvregError) return error;
  if (isOfCertificate(error)) {
    const saying = `the certificate of the database cannot be checked (${messageOf(error)}); name the authority with sslrootcert=FILE in the address, and the host as the certificate has it`;
    return new EngineFailure("refused", saying, { cause: error });
  }
  if (!isDatabaseError(error)) {
    return isOfNetwork(error)
      ? new EngineFailure("away", `the database cannot be reached (${messageOf(error)})`, { cause: error })
      : error;
  }
  const [, kind, saying] = SAYINGS.find(([code]) => error.code.startsWith(code)) ?? [];
  if (kind === undefined || saying === undefined) return error;
  return new EngineFailure(kind, `${saying} (${error.code}: ${error.message})`, { cause: error });
}

/** What a command ends with that cannot go on for it: with 6 where the database may be back later. */
export function commandFailure(failure: EngineFailure, message: string): EvregError {
  const code = failure.kind === "refused" ? "usage" : "unavailable";
  const error = new EvregError(code, message, {}, { cause: failure });
  if (isLost(failure)) error.retryAfterMs = TRY_AGAIN_MS;
  return error;
}

/** Whether the connection is of no use any more. */
export function isLost(failure: unknown): failure is EngineFailure {
  return failure instanceof EngineFailure && failure.kind === "away";
}

function isDatabaseError(error: unknown): error is DatabaseError {
  return error instanceof Error && "severity" in error && "code" in error && typeof error.code === "string";
}

/** What the driver says of a connection that ended, in words of its own. */
const ENDED =
  /Connection terminated|Query read timeout|timeout expired|timeout exceeded|Client has encountered a connection error|not queryable/;

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)/;

/** The certificate of the database, or the file that is to prove it, is no good. */
function isOfCertificate(error: unknown): error is Error {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return false;
  return CERTIFICATE.test(error.code) || error.code === "ENOENT";
}

function isOfNetwork(error: unknown): boolean {
  if (error instanceof AggregateError) return true;
  if (!(error instanceof Error)) return false;
  return (
    ("code" in error && typeof error.code === "string" && error.code.startsWith("E")) ||
    ENDED.test(error.message)
  );
}
