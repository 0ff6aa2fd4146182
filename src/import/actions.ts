import { isDeepStrictEqual } from "node:util";
import { EvregError } from "../domain/error.ts";
import { checkNewActionName } from "../domain/names.ts";
import { checkSchema } from "../schema/check.ts";
import { isObject, type JsonObject } from "../schema/keywords.ts";
import { fieldName, pathNamed, pathOf } from "../json/field-path.ts";
import type { Catalogue } from "./catalogue.ts";
import { type Note, toDraft7, type Translated } from "./draft7.ts";
import { refuse, UnsupportedMessage } from "./source.ts";

/** An action as a registry file declares it. */
export interface ImportedAction {
  readonly action: string;
  readonly schemata: JsonObject;
  readonly deprecated: boolean;
  /** Where the document has it. */
  readonly place: string;
  /** What is different in it from the document. */
  readonly notes: readonly Note[];
}

/** What there is no action for, and why. */
export interface SkippedMessage {
  readonly name: string;
  readonly place: string;
  readonly message: string;
}

/**
 * An action for each message that can be one, sorted by name, and why there is none for the others.
 * @param prefix goes before each name, with a dot
 */
export function actionsIn(
  { source, messages }: Catalogue,
  prefix: string | undefined,
): { readonly actions: readonly ImportedAction[]; readonly skipped: readonly SkippedMessage[] } {
  const skipped: SkippedMessage[] = [];
  const byName = new Map<string, ImportedAction[]>();
  for (const { name, place, read } of messages) {
    try {
      const { schema, deprecated } = read();
      const action = actionName(name, place, prefix);
      const { schemata, notes } = checked(toDraft7(source, schema));
      const was = { pointer: place, message: `named ${JSON.stringify(name)} in the document` };
      const allNotes = action.endsWith(name) ? notes : [was, ...notes];
      const imported = { action, schemata, deprecated, place, notes: allNotes };
      byName.set(action, [...(byName.get(action) ?? []), imported]);
    } catch (error) {
      if (!(error instanceof UnsupportedMessage)) throw error;
      skipped.push({ name, place: error.pointer, message: error.message });
    }
  }
  const actions: ImportedAction[] = [];
  for (const [name, all] of [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const isOne = all.every(({ schemata }) => isDeepStrictEqual(schemata, all[0]?.schemata));
    if (isOne) actions.push(...all.slice(0, 1));
    else {
      const message = `${all.length} of the document come to the name ${name}, with different schemas; name them apart there`;
      skipped.push(...all.map(({ place }) => ({ name, place, message })));
    }
  }
  return { actions, skipped };
}

/** Characters that a name cannot have become a dot where they separate words, as in `user/signed-up`, else an underscore. */
function actionName(name: string, place: string, prefix: string | undefined): string {
  const plain = name
    .replaceAll(/[^A-Za-z0-9_.-]+/g, (odd) => (/[/:#.]/.test(odd) ? "." : "_"))
    .replaceAll(/\.{2,}/g, ".")
    .replaceAll(/^\.|\.$/g, "");
  try {
    return checkNewActionName("action", prefix === undefined || plain === "" ? plain : `${prefix}.${plain}`);
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    return refuse(place, `no action can be named so: it ${String(error.details["message"])}`);
  }
}

function checked({ schemata, notes, sourceOf }: Translated): Pick<ImportedAction, "schemata" | "notes"> {
  const types = isObject(schemata) ? [schemata["type"] ?? "object"].flat() : ["object"];
  if (!types.includes("object")) {
    refuse(sourceOf(["type"]), "a payload is always an object, which this schema refuses");
  }
  try {
    const warnings = checkSchema(schemata).warnings.map(({ pointer, message }) => ({
      pointer: sourceOf(pathOf(pointer, schemata)),
      message,
    }));
    return { schemata: schemata as JsonObject, notes: [...notes, ...warnings] };
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    const { field, message } = error.details;
    const path = pathNamed(String(field)).slice(1);
    const which =
      path.length === 0 ? "its schema, with all that it refers to," : `${fieldName(path.slice(-1))}:`;
    return refuse(sourceOf(path), `${which} ${String(message)}`);
  }
}
