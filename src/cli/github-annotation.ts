import { printableLine } from "./printable.ts";

/** One annotation of a file, as a GitHub workflow reads it from the log. */
export interface Annotation {
  readonly level: "error" | "warning";
  /** Left out when the text came from stdin. */
  readonly file: string | undefined;
  readonly line: number;
  readonly title: string;
  readonly message: string;
}

/** `::error file=a.json,line=7,title=…::message`, on one line. */
export function annotationLine({ level, file, line, title, message }: Annotation): string {
  const place = file === undefined ? "" : `file=${property(file)},line=${line},`;
  return `::${level} ${place}title=${property(title)}::${data(message)}\n`;
}

/** Names in a schema come from outside, and the log is read on terminals as well. */
function data(text: string): string {
  return printableLine(text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A"));
}

function property(text: string): string {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
