/** What each exit code of `EXIT` and `EXIT_CODE` tells; a test holds it to both. */
const MEANINGS: readonly (readonly [code: number, meaning: string])[] = [
  [0, "Done."],
  [
    1,
    "Failed: refused as it is (a payload against its schema, too large), or what was waited for went wrong.",
  ],
  [2, "A mistake on the command line or in the configuration. Nothing was done."],
  [3, "Not found: no such record, context or data folder."],
  [4, "Not allowed: no token, one that is not valid, or one whose scopes do not reach this."],
  [5, "Conflict: a name that is taken, a breaking change, a data folder that another process holds."],
  [6, "Unreachable: no evreg answered. Trying again later may help."],
  [
    7,
    "Of a bulk, some items were refused; the others are done. With a checkpoint only what this run was refused counts.",
  ],
  [130, "Interrupted (Ctrl-C)."],
];

const EXIT_CODES_HEAD =
  'What the process of a command ends with. The reason is on stderr; with --json it is one JSON document there: {"error", "details", "code"}, where code is the HTTP status.';

export function exitCodes(wrapped: (text: string, indent: number) => string): string {
  const lines = MEANINGS.map(
    ([code, meaning]) => `${String(code).padStart(5)}  ${wrapped(meaning, 7).trimStart()}`,
  );
  return `${wrapped(EXIT_CODES_HEAD, 0)}\n${lines.join("")}`;
}
