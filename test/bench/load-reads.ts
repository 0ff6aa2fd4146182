import { pace, type PacedLoop, type PacedLoopResult } from "./load-paced.ts";

export interface ListingRead {
  readonly name: string;
  /** Of `GET /v1/events`. */
  readonly path: string;
  /** What `meta.total` must be, or was when nothing was published yet. */
  readonly total: number;
  /** Whether what is published meanwhile counts. */
  readonly grows: boolean;
  /** Every rowid must be below; without, anything goes. */
  readonly below?: number;
  readonly perPage: number;
}

export interface ReadsRun {
  readonly publishing: PacedLoop;
  readonly reading: Omit<PacedLoop, "requests">;
  readonly reads: readonly ListingRead[];
}

export interface ReadsResult {
  readonly reading: PacedLoopResult;
  readonly publishing: PacedLoopResult;
  /** What was wrong in the answers, in words. */
  readonly wrong: readonly string[];
}

interface Listing {
  readonly data: readonly { readonly rowid: number }[];
  readonly meta: { readonly total: number };
}

/**
 * Reads while publishing goes on. A total that grows must count every event that was answered before it was asked for,
 * and none that was not yet sent when the answer came.
 */
export async function readWhilePublishing({ publishing, reading, reads }: ReadsRun): Promise<ReadsResult> {
  let sent = 0;
  let answered = 0;
  const answeredAtSend = new Map<number, number>();
  const wrong: string[] = [];
  const published = pace(publishing, {
    keepsBodies: false,
    onSend: () => {
      sent += 1;
    },
    onAnswer: () => {
      answered += 1;
    },
  });
  const requests = reads.map(({ path }) => ({ method: "GET" as const, path }));
  const read = await pace(
    { ...reading, requests },
    {
      keepsBodies: true,
      onSend: (_, sequence) => answeredAtSend.set(sequence, answered),
      onAnswer: ({ body }, { which, sequence }) => {
        const expected = reads[which];
        if (expected === undefined) return;
        const least = expected.total + (expected.grows ? (answeredAtSend.get(sequence) ?? 0) : 0);
        const most = expected.total + (expected.grows ? sent : 0);
        const fault = faultOf(JSON.parse(body?.toString() ?? "null") as Listing, expected, least, most);
        if (fault !== undefined) wrong.push(`${expected.path}: ${fault}`);
      },
    },
  );
  return { reading: read, publishing: await published, wrong };
}

function faultOf(
  { data, meta }: Listing,
  expected: ListingRead,
  least: number,
  most: number,
): string | undefined {
  const { total } = meta;
  if (total < least || total > most) return `the total is ${total}, and must be from ${least} to ${most}`;
  if (data.length !== expected.perPage) return `${data.length} events on the page`;
  let before = expected.below ?? Number.MAX_SAFE_INTEGER;
  for (const { rowid } of data) {
    if (rowid >= before) return `event ${rowid} comes after ${before}`;
    before = rowid;
  }
  return undefined;
}
