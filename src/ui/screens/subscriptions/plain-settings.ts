import type { JsonSchema } from "../../../domain/request.ts";
import type { SubscriptionMode } from "../../../domain/subscription.ts";
import type { Field, SettingOf } from "../../../model/field.ts";
import { CHOICE, type FieldKind } from "../../../model/value-kinds.ts";
import { SUBSCRIPTION } from "../../../model/subscription.ts";

/** A setting that one text stands for. */
export type PlainSetting = Exclude<SettingOf<typeof SUBSCRIPTION>, "filter" | "ordered" | "on_exhausted">;

interface PlainField extends Pick<Field, "only" | "title" | "words" | "unset" | "form"> {
  readonly name: PlainSetting;
  readonly kind: FieldKind;
  readonly schema: JsonSchema;
}

export const PLAIN_SETTINGS: readonly PlainField[] = Object.entries<Field>(SUBSCRIPTION).flatMap(
  ([name, { kind, change: schema, ...field }]) =>
    kind === undefined || kind === CHOICE || schema === undefined
      ? []
      : [{ ...field, name: name as PlainSetting, kind, schema }],
);

/** Those that the form has for one of a mode; with a group, those of it alone. */
export function formOf(mode: SubscriptionMode, group?: string): readonly PlainField[] {
  return PLAIN_SETTINGS.filter(
    ({ form, only }) =>
      form !== undefined &&
      (group ?? form.group) === form.group &&
      (only === undefined || only.mode === mode),
  );
}
