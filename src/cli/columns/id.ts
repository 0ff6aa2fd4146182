// A file a noun has what is shown of it in listings and alone. Numbers and times are never cut; names give way first, then
// whole columns, so that a row is one line on a terminal of 80 columns.

/** How the number of a record stands in a listing. */
export const id = { title: "ID", align: "right" } as const;
