import { EvregError } from "../domain/error.ts";

export interface Attempted {
  readonly origin: string;
  readonly method: string;
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
}

/**
 * What a failed exchange means to the one who asked for it, be it a program or a person: the command line adds its own
 * words to it.
 */
export function unreachable(error: unknown, attempted: Attempted): EvregError {
  if (error instanceof EvregError) return error;
  const code = codeOf(error);
  const details = code === undefined ? { url: attempted.origin } : { url: attempted.origin, cause: code };
  return new EvregError("unreachable", explain(error, code, attempted), details, { cause: error });
}

function explain(error: unknown, code: string | undefined, attempted: Attempted): string {
  const { origin, timeoutMs, maxAnswerBytes } = attempted;
  switch (code) {
    case "ECONNREFUSED":
      return `Nothing listens at ${origin}. Is a server running there?`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `The name in ${origin} has no address. Is it spelt right?`;
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return `There is no way from here to ${origin}. Check the network.`;
    case "TimeoutError":
    case "UND_ERR_CONNECT_TIMEOUT":
    case "ETIMEDOUT":
      return `${origin} did not answer within ${timeoutMs / 1_000} s.${doubt(attempted)}`;
    case "UND_ERR_RES_EXCEEDED_MAX_SIZE":
      return `The answer of ${origin} is larger than ${maxAnswerBytes} bytes. Ask for fewer records at once.`;
    case "UND_ERR_DESTROYED":
    case "UND_ERR_CLOSED":
      return "This connection to the server was closed before.";
    case "UND_ERR_SOCKET":
    case "ECONNRESET":
    case "EPIPE":
      return `The connection to ${origin} broke before the answer came.${doubt(attempted)}`;
    case undefined:
    default:
      if (code !== undefined && NO_TLS.has(code)) {
        const plain = origin.replace(/^https:/, "http:");
        return `What listens at ${origin} does not speak https; evreg speaks it only where it was set up to. Try ${plain}, or name the proxy that speaks https for it.`;
      }
      if (code !== undefined && /CERT|SIGNATURE|ALTNAME|SSL|TLS/.test(code)) {
        return `The certificate of ${origin} is not trusted (${code}). Use the address it is made out for; where an authority of your own signed it, name its certificate in NODE_EXTRA_CA_CERTS.`;
      }
      if (code?.startsWith("HPE_") === true) {
        return `${origin} does not answer in HTTP. Is the address that of an evreg server?`;
      }
      return `${origin} could not be asked: ${error instanceof Error ? error.message : String(error)}. Check the address.`;
  }
}

/** What OpenSSL makes of a plain HTTP answer where it expects TLS: the text read as a record's header. */
const NO_TLS = new Set(["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG"]);

/** After a broken exchange nobody here knows whether the server had done it. */
function doubt({ method }: Attempted): string {
  return method === "GET" ? "" : " It may have been done all the same: look before asking again.";
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === "string") return code;
  return error.name === "TimeoutError" ? error.name : undefined;
}
