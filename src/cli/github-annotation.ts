import { relative, resolve, sep } from "node:path";
import { printableLine } from "./printable.ts";

/** One annotation of a file, as a GitHub workflow reads it from the log. */
export interface Annotation {
  readonly level: "error" | "warning" | "notice";
  /** From the root of the repository; left out when the text came from stdin. */
  readonly file: string | undefined;
  readonly line: number;
  readonly title: string;
  readonly message: string;
}

/**
 * A path as annotations name it: from the root of the repository, wherever in it the command runs.
 * @param workspace where the repository is (`GITHUB_WORKSPACE`); without one, and outside it, the path is as typed
 */
export function pathInWorkspace(path: string, workspace: string | undefined): string {
  if (workspace === undefined || workspace === "") return path;
  const inside = relative(workspace, resolve(path)).split(sep).join("/");
  return inside === "" || inside.startsWith("../") || inside === ".." ? path : inside;
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
