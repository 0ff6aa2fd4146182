// A file a noun has what is shown of it in listings and alone. Numbers are never cut, and names last: times are
// told to the minute first and whole columns give way, so that a row is one line on a terminal of 80 columns.

/** How the number of a record stands in a listing. */
export const id = { title: "ID", align: "right" } as const;
