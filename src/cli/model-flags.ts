import { Flags, type Interfaces } from "@oclif/core";
import type { JsonSchema } from "../domain/request.ts";
import type { Field, Fields } from "../model/field.ts";
import { CHOICE, type FieldKind } from "../model/value-kinds.ts";
import { choiceFlag, flagValue } from "./flags.ts";

/** What takes a setting away again. */
export const NONE = "none";

interface FlaggedField {
  readonly member: string;
  /** The name of its flag: `rate-limit`. */
  readonly name: string;
  readonly summary: string;
  readonly kind: FieldKind;
  readonly schema: JsonSchema;
  readonly isNullable: boolean;
}

/** The members that one flag stands for. */
function flaggedFields(fields: Fields): readonly FlaggedField[] {
  return Object.entries<Field>(fields).flatMap(([member, { flag, kind, change: schema, none }]) => {
    if (flag === undefined || kind === undefined || schema === undefined) return [];
    const { name = member.replace(/_ms$/, "").replaceAll("_", "-"), summary } = flag;
    return [{ member, name, summary, kind, schema, isNullable: none === null }];
  });
}

/** Makes the flags of a record, as far as one flag stands for one member. */
export function flagsOf(fields: Fields, helpGroup: string): Readonly<Interfaces.FlagInput> {
  const flags = flaggedFields(fields).map(({ member, name, summary, kind, schema }) => {
    const shape = { helpGroup, member };
    if (kind === CHOICE) return [name, choiceFlag(summary, wordsOf(schema), shape)] as const;
    const text = { summary, helpValue: kind.helpValue, ...shape };
    const lines = { ...text, multiple: true, multipleNonGreedy: true } as const;
    return [name, kind.hasLines ? Flags.string(lines) : Flags.string(text)] as const;
  });
  return Object.fromEntries(flags);
}

/** The members of a body that these flags stand for. @throws `usage` for a text that its kind does not read */
export function inputOf(fields: Fields, flags: object): object {
  const typed = flags as Readonly<Record<string, string | readonly string[] | undefined>>;
  return Object.fromEntries(
    flaggedFields(fields).flatMap((field) => {
      const words = typed[field.name];
      if (words === undefined) return [];
      const text = typeof words === "string" ? words : words.join("\n");
      const isNone = field.isNullable && text === NONE;
      return [[field.member, isNone ? null : flagValue(field.name, text, field.kind, field.schema)]];
    }),
  );
}

function wordsOf(schema: JsonSchema): readonly string[] {
  return (schema["enum"] as readonly (string | null)[]).filter((word) => word !== null);
}
