import { encodeJson } from "../json/encode.ts";
import { loopPace } from "../runtime/pace.ts";
import { PieceWriter } from "./pieces.ts";
import { type Reply, reply } from "./reply.ts";

/** So few records are written in one go, each being bounded by what a request may bring. */
const FEW = 5;
/** What a document of more comes to at least. */
const LIKELY_BYTES = 16 * 1024;

/** `{ data: [...] }` of records that may be large each, such as schemas, with others let in between two of them. */
export async function listReply(status: number, data: readonly object[]): Promise<Reply> {
  if (data.length <= FEW) return reply(status, { data });
  const writer = new PieceWriter(LIKELY_BYTES);
  let before = '{"data":[';
  for (const one of data) {
    if (!loopPace.mayGoOn()) await loopPace.breathe();
    writer.text(before + encodeJson(one));
    before = ",";
  }
  writer.text("]}");
  return { status, body: writer.end() };
}
