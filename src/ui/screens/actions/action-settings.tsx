import { COMPATIBILITY_MODES } from "../../../model/action.ts";
import { Button } from "../../parts/button.tsx";
import {
  type Action,
  type CompatibilityMode,
  type CompatibilityRule,
  isLooser,
} from "../../../domain/action.ts";
import { may } from "../../api/identity.ts";
import { askJson, send } from "../../api/request.ts";
import { useActing } from "../../parts/acting.ts";
import { refuseConflict, useDraft } from "../../api/drafts.ts";
import { shellWord } from "../../../domain/formats.ts";
import { Command } from "../../parts/copy.tsx";
import { CameBack, ChoiceField, FieldGroup, TextField } from "../../parts/form.tsx";
import { Say } from "../../parts/states.tsx";
import type { Question } from "../../parts/confirm.tsx";
import { linkTo } from "../../parts/route.ts";
import { say, sayError } from "../../parts/toast.tsx";
import type { PartProps } from "./part-props.ts";
import { PROTECTED } from "./action-state.tsx";
import { actionPath } from "./read-action.ts";

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
export function ActionSettings({ action }: PartProps) {
  const { action: name, compatibility, compatibility_against: against, deprecated, retired } = action;
  // What was touched: all else is as it is now, and is not sent.
  const draft = useDraft<Touched>(linkTo(["actions", name, "settings"]), () => UNTOUCHED);
  const { mode, compared, successor } = draft.fields;
  const touch = (part: Touched): void => {
    const [field] = Object.keys(part) as (keyof Touched)[];
    // A field that was touched just now began with what is shown.
    if (field !== undefined && draft.fields[field] === undefined) {
      draft.rebase({ [field]: settingsOf(action)[field] });
    }
    draft.change(part);
  };
  const { failure, errorAt, act } = useActing();
  const undoing = useActing(sayError);
  const put = (change: SettingsChange): Promise<unknown> => send("PUT", actionPath(name), { body: change });
  const apply = (change: SettingsChange, done: string, before: SettingsChange, question?: Question): void =>
    void act(async () => {
      const now = settingsOf((await askJson<Action>(actionPath(name))).data);
      const sent = (Object.keys(MEMBERS) as (keyof Touched)[]).filter((one) => MEMBERS[one] in change);
      refuseConflict(draft, now, sent, (field) => MEMBERS[field]);
      await put(change);
      draft.anew();
      say(done, () => void undoing.act(() => put(before)));
    }, question);
  const before: SettingsChange = { deprecated, retired, successor: action.successor };
  const goesOn = (change: SettingsChange, done: string, question?: Question): void =>
    apply(change, done, before, question);
  const named = successor === undefined ? action.successor : successor.trim() || null;
  const touched = successor === undefined ? {} : { successor: named };
  const retire = (): void =>
    goesOn({ retired: true, ...touched }, `${name} is retired.`, {
      title: `Retire ${name}?`,
      body: "Publishing is refused with 410 from now on. Stored events can be read, and deliveries go on.",
      act: "Retire it",
      danger: true,
    });
  const change: Partial<CompatibilityRule> = {
    ...(mode === undefined ? {} : { compatibility: mode }),
    ...(compared === undefined ? {} : { compatibility_against: compared }),
  };
  const rule: CompatibilityRule = { compatibility, compatibility_against: against, ...change };
  const isNew = rule.compatibility !== compatibility || rule.compatibility_against !== against;
  const changeRule = (): void =>
    apply(change, "Compatibility is changed.", { compatibility, compatibility_against: against });
  const needsAdmin = isLooser(action, rule) && !may("admin", action.application);
  return (
    <div class="form">
      {failure !== undefined && !FIELDS.has(failure.details["field"]) && (
        <Say state="failed" title="Not changed">
          {failure.message}
        </Say>
      )}
      <CameBack draft={draft} />
      <FieldGroup title="Compatibility">
        <ChoiceField
          label="Protect"
          value={rule.compatibility}
          choices={COMPATIBILITY_MODES.map((one) => [one, `${PROTECTED[one]} (${one})`])}
          set={(choice) => touch({ mode: choice })}
          hint="Whom a change of the schema must not break."
          error={needsAdmin ? "To protect less than before needs the scope admin." : errorAt("compatibility")}
        />
        <ChoiceField
          label="Compare with"
          value={rule.compatibility_against}
          choices={[
            ["last", "the schema in force"],
            ["all", "all revisions"],
          ]}
          set={(choice) => touch({ compared: choice })}
          error={errorAt("compatibility_against")}
        />
        <div class="form-acts">
          <Button look="main" run={changeRule} disabled={!isNew || needsAdmin} label="Change it" />
        </div>
      </FieldGroup>
      <FieldGroup title={retired ? "Retired" : deprecated ? "Deprecated" : "In force"}>
        <TextField
          label="Successor"
          value={successor ?? action.successor ?? ""}
          set={(text) => touch({ successor: text })}
          placeholder={`${name}.v2`}
          hint="The action to publish to instead. Publishers are told of it."
          error={errorAt("successor")}
        />
        <div class="form-acts">
          {(deprecated || retired) && (
            <>
              <Button
                run={() => goesOn({ successor: named }, "The successor is changed.")}
                disabled={named === action.successor}
                label="Change the successor"
              />
              <Button
                run={() => goesOn({ deprecated: false, retired: false }, `${name} is in force again.`)}
                label="Put in force again"
              />
            </>
          )}
          {!deprecated && !retired && (
            <Button
              run={() => goesOn({ deprecated: true, ...touched }, `${name} is deprecated.`)}
              label="Deprecate"
            />
          )}
          {!retired && <Button look="danger" run={retire} label="Retire…" />}
        </div>
      </FieldGroup>
      <Command
        text={`${deprecated ? "evreg actions retire" : "evreg actions deprecate"} ${shellWord(name)}${named === null ? "" : ` --successor ${shellWord(named)}`}`}
      />
    </div>
  );
}
