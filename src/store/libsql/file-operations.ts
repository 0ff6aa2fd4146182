import { type Operations, read, write } from "../sql/operation.ts";
import { moveLog, pauseCheckpoints, resumeCheckpoints } from "./connection.ts";
import { examineFile, settleFile } from "./files/closed-file.ts";
import { moveNumbers } from "./files/id-reservation.ts";
import { addLog } from "./files/wal-check.ts";

/** What the threads that have the data file open do with the file itself. */
export const FILE_OPERATIONS = {
  pauseCheckpoints: read(pauseCheckpoints),
  resumeCheckpoints: read(resumeCheckpoints),
  /** Makes a real write of this many bytes, to find out whether the disk takes them. The next one frees them. */
  probe: write(
    async (sql, bytes: number) =>
      await sql.run(
        `INSERT INTO write_check (one, filler) VALUES (1, zeroblob(?))
          ON CONFLICT DO UPDATE SET filler = excluded.filler`,
        bytes,
      ),
  ),
} as const satisfies Operations[string];

/**
 * What a thread of its own can do with a file: one that nobody has open, or one beside the two threads that have the data file
 * open.
 */
export const FILE_TASKS = { examineFile, settleFile, moveNumbers, addLog, moveLog } as const;
