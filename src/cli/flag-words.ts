/** Flags as they would be typed again, each after a space; without what belongs to one page, and without the token itself. */
export function flagWords(flags: object): string {
  let words = "";
  for (const [name, value] of Object.entries(flags) as [string, string | number | boolean | undefined][]) {
    if (name === "after" || name === "page" || value === undefined || value === false) continue;
    words += ` --${name}`;
    // A token is not for the screen.
    if (name === "token") words += " TOKEN";
    else if (value !== true) words += ` ${shellWord(String(value))}`;
  }
  return words;
}

function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
