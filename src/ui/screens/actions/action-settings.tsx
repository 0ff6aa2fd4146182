import { useState } from "preact/hooks";
import type { Action, CompatibilityMode, CompatibilityRule } from "../../../domain/action.ts";
import { may } from "../../api/identity.ts";
import { ApiError } from "../../api/api-error.ts";
import { askJson } from "../../api/request.ts";
import { noted } from "../../api/resource.ts";
import { changedByOthers, changedText, useDraft } from "../../api/drafts.ts";
import { Command, quoted } from "../../parts/copy.tsx";
import { CameBack, ChoiceField, FieldGroup, TextField } from "../../parts/form.tsx";
import { Say } from "../../parts/states.tsx";
import { confirm } from "../../shell/confirm.tsx";
import { linkTo } from "../../shell/route.ts";
import { say, sayError } from "../../shell/toast.tsx";
import type { PartProps } from "./part-props.ts";
import { isLooser, PROTECTED } from "./action-state.tsx";
import { actionPath } from "./read-action.ts";

const MODES: readonly CompatibilityMode[] = ["full", "producer", "consumer", "none"];

type SettingsChange = object;

/** What a person has touched. */
interface Touched {
  readonly mode?: CompatibilityMode | undefined;
  readonly compared?: CompatibilityRule["compatibility_against"] | undefined;
  readonly successor?: string | undefined;
}

const UNTOUCHED: Touched = { mode: undefined, compared: undefined, successor: undefined };

const MEMBERS = {
  mode: "compatibility",
  compared: "compatibility_against",
  successor: "successor",
} as const satisfies Readonly<Record<keyof Touched, keyof Action>>;

const FIELDS: ReadonlySet<unknown> = new Set(Object.values(MEMBERS));

const settingsOf = (action: Action) => ({
  mode: action.compatibility,
  compared: action.compatibility_against,
  successor: action.successor ?? "",
});

/** Whom changes of the schema must not break, and whether publishing goes on. */
export function ActionSettings({ action, reload }: PartProps) {
  const { action: name, compatibility, compatibility_against: against, deprecated, retired } = action;
  // What was touched: all else is as it is now, and is not sent.
  const draft = useDraft<Touched>(linkTo(["actions", name, "settings"]), () => UNTOUCHED);
  const { mode, compared, successor } = draft.fields;
  const touch = (part: Touched): void => {
    const [field] = Object.keys(part) as (keyof Touched)[];
    // Of a field that was touched just now it began with what is shown.
    if (field !== undefined && draft.fields[field] === undefined) {
      draft.rebase({ [field]: settingsOf(action)[field] });
    }
    draft.change(part);
  };
  /** Two who change the same field are told of each other; sent once more, it replaces what the other has set. */
  const refuseConflict = async (change: SettingsChange): Promise<void> => {
    const now = settingsOf((await askJson<Action>(actionPath(name))).data);
    const sent = (Object.keys(MEMBERS) as (keyof Touched)[]).filter((one) => MEMBERS[one] in change);
    const field = changedByOthers(draft, now, sent);
    if (field === undefined) return;
    draft.rebase({ [field]: now[field] });
    throw new ApiError(409, changedText(now[field]), { field: MEMBERS[field] });
  };
  const [wrong, setWrong] = useState<{ readonly field: unknown; readonly message: string } | undefined>();
  const send = async (change: SettingsChange): Promise<boolean> => {
    setWrong(undefined);
    try {
      await refuseConflict(change);
      await askJson(actionPath(name), { method: "PUT", body: change });
      draft.anew();
      reload();
      return true;
    } catch (error) {
      const failure = noted(error);
      setWrong({ field: failure.details["field"], message: failure.message });
      return false;
    }
  };
  const errorOf = (field: string): string | undefined => (wrong?.field === field ? wrong.message : undefined);
  const undo = (change: SettingsChange) => () => {
    void askJson(actionPath(name), { method: "PUT", body: change }).then(reload, sayError);
  };
  const before: SettingsChange = { deprecated, retired, successor: action.successor };
  const goesOn = async (change: SettingsChange, done: string): Promise<void> => {
    if (await send(change)) say(done, undo(before));
  };
  const named = successor === undefined ? action.successor : successor.trim() || null;
  const touched = successor === undefined ? {} : { successor: named };
  const retire = async (): Promise<void> => {
    const yes = await confirm({
      title: `Retire ${name}?`,
      body: "Publishing is refused with 410 from now on. Stored events can be read, and deliveries go on.",
      act: "Retire it",
      danger: true,
    });
    if (yes) await goesOn({ retired: true, ...touched }, `${name} is retired.`);
  };
  const change: Partial<CompatibilityRule> = {
    ...(mode === undefined ? {} : { compatibility: mode }),
    ...(compared === undefined ? {} : { compatibility_against: compared }),
  };
  const rule: CompatibilityRule = { compatibility, compatibility_against: against, ...change };
  const isNew = rule.compatibility !== compatibility || rule.compatibility_against !== against;
  const changeRule = async (): Promise<void> => {
    if (!(await send(change))) return;
    say("Compatibility is changed.", undo({ compatibility, compatibility_against: against }));
  };
  const needsAdmin = isLooser(action, rule) && !may("admin", action.application);
  return (
    <div class="form">
      {wrong !== undefined && !FIELDS.has(wrong.field) && (
        <Say state="failed" title="Not changed">
          {wrong.message}
        </Say>
      )}
      <CameBack draft={draft} />
      <FieldGroup title="Compatibility">
        <ChoiceField
          label="Protect"
          value={rule.compatibility}
          choices={MODES.map((one) => [one, `${PROTECTED[one]} (${one})`])}
          set={(choice) => touch({ mode: choice })}
          hint="Whom a change of the schema must not break."
          error={needsAdmin ? "To protect less than before needs the scope admin." : errorOf("compatibility")}
        />
        <ChoiceField
          label="Compare with"
          value={rule.compatibility_against}
          choices={[
            ["last", "the schema in force"],
            ["all", "all revisions"],
          ]}
          set={(choice) => touch({ compared: choice })}
          error={errorOf("compatibility_against")}
        />
        <div class="form-acts">
          <button class="btn main" disabled={!isNew || needsAdmin} onClick={() => void changeRule()}>
            Change it
          </button>
        </div>
      </FieldGroup>
      <FieldGroup title={retired ? "Retired" : deprecated ? "Deprecated" : "In force"}>
        <TextField
          label="Successor"
          value={successor ?? action.successor ?? ""}
          set={(text) => touch({ successor: text })}
          placeholder={`${name}.v2`}
          hint="The action to publish to instead. Publishers are told of it."
          error={errorOf("successor")}
        />
        <div class="form-acts">
          {(deprecated || retired) && (
            <>
              <button
                class="btn"
                disabled={named === action.successor}
                onClick={() => void goesOn({ successor: named }, "The successor is changed.")}
              >
                Change the successor
              </button>
              <button
                class="btn"
                onClick={() =>
                  void goesOn({ deprecated: false, retired: false }, `${name} is in force again.`)
                }
              >
                Put in force again
              </button>
            </>
          )}
          {!deprecated && !retired && (
            <button
              class="btn"
              onClick={() => void goesOn({ deprecated: true, ...touched }, `${name} is deprecated.`)}
            >
              Deprecate
            </button>
          )}
          {!retired && (
            <button class="btn danger" onClick={() => void retire()}>
              Retire…
            </button>
          )}
        </div>
      </FieldGroup>
      <Command
        text={`${deprecated ? "evreg actions retire" : "evreg actions deprecate"} ${quoted(name)}${named === null ? "" : ` --successor ${quoted(named)}`}`}
      />
    </div>
  );
}
