import { EvregError } from "../domain/error.ts";

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json[ \t]*(?:;(.*))?$/i;
const CHARSET = /(?:^|;)[ \t]*charset[ \t]*=[ \t]*"?([^";\s]*)"?/i;

/** Demands a body of plain JSON in UTF-8. Also what keeps a web page's simple forms out: those cannot send this type. */
export function checkMediaType(contentType: string | undefined, contentEncoding: string | undefined): void {
  if (contentType !== "application/json") {
    if (contentType === undefined) {
      throw unsupported("The request has no `Content-Type`; send `Content-Type: application/json`.");
    }
    const parameters = JSON_TYPE.exec(contentType);
    if (parameters === null) {
      throw unsupported(`The body's type is ${quote(contentType)}; send \`Content-Type: application/json\`.`);
    }
    const charset = CHARSET.exec(parameters[1] ?? "")?.[1];
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
      throw unsupported(`The body's character set is ${quote(charset)}; JSON is sent in UTF-8.`);
    }
  }
  if (contentEncoding !== undefined && !/^(?:identity)?$/i.test(contentEncoding.trim())) {
    throw unsupported(`The body's encoding is ${quote(contentEncoding)}; send it uncompressed.`);
  }
}

function unsupported(message: string): EvregError {
  return new EvregError("unsupported_media_type", message);
}

function quote(header: string): string {
  return JSON.stringify(header.slice(0, 100));
}
