import { styleText } from "node:util";
import type { Finding } from "../../domain/finding.ts";
import { nextCommand, serveCommand } from "../next-command.ts";
import { printableLine } from "../printable.ts";
import { pad, textWidth, wrap } from "../text-width.ts";

const TONES = { ok: "green", warning: "yellow", problem: "red" } as const;
const STATUS_WIDTH = "problem".length;
const GAP = "  ";
/** Fewest cells in which a sentence is still one. */
const LEAST_ROOM = 24;

/** Who was asked knows nothing of the flags that led there, and a bare command would act elsewhere. */
function withTarget(remedy: string): string {
  return remedy.replace(/`evreg ([^`]+)`/g, (_, words: string) => {
    return `\`${words === "serve" ? serveCommand() : nextCommand(words)}\``;
  });
}

/** For a person: a line for each finding, and under it what to do. Sentences go on under themselves. */
export function findingLines(findings: readonly Finding[], width: number | undefined): string {
  const checkWidth = Math.max(0, ...findings.map(({ check }) => textWidth(check)));
  const indent = STATUS_WIDTH + GAP.length + checkWidth + GAP.length;
  const room = width === undefined ? undefined : Math.max(LEAST_ROOM, width - indent);
  const lines = (text: string): readonly string[] => {
    const line = printableLine(text);
    return room === undefined ? [line] : wrap(line, room);
  };
  return findings
    .flatMap(({ check, status, found, remedy: bare }) => {
      const remedy = bare === null ? null : withTarget(bare);
      const [first = "", ...rest] = lines(found);
      const mark = styleText(TONES[status], pad(status, STATUS_WIDTH, "left"), { stream: process.stdout });
      const next = remedy === null ? [] : lines(`> ${remedy}`);
      return [
        `${mark}${GAP}${pad(check, checkWidth, "left")}${GAP}${first}`,
        ...[...rest, ...next].map((line) => `${" ".repeat(indent)}${line}`),
      ];
    })
    .map((line) => `${line}\n`)
    .join("");
}
