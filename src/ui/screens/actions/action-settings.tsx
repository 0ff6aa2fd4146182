import { COMPATIBILITY_MODES } from "../../../model/action.ts";
import { Button } from "../../parts/button.tsx";
import { type Action, type CompatibilityRule, isLooser } from "../../../domain/action.ts";
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

/** The fields of the form, by the names that the API has for them. */
const settingsOf = (action: Action) => ({
  compatibility: action.compatibility,
  compatibility_against: action.compatibility_against,
  successor: action.successor ?? "",
});
type Settings = ReturnType<typeof settingsOf>;
const RULE = ["compatibility", "compatibility_against"] as const;

/** Whom changes of the schema must not break, and whether publishing goes on. Only what was changed is sent. */
export function ActionSettings({ action }: PartProps) {
  const { action: name, deprecated, retired } = action;
  const draft = useDraft<Settings>(linkTo(["actions", name, "settings"]), () => settingsOf(action));
  const { fields, before } = draft;
  const { failure, errorAt, act } = useActing();
  const undoing = useActing(sayError);
  const isChanged = (field: keyof Settings): boolean => fields[field] !== before[field];
  const put = async (change: object): Promise<void> => {
    const { data } = await send<Action>("PUT", actionPath(name), { body: change });
    draft.begin(settingsOf(data));
  };
  const apply = (change: object, done: string, back: object, question?: Question): void =>
    void act(async () => {
      const now = settingsOf((await askJson<Action>(actionPath(name))).data);
      refuseConflict(
        draft,
        now,
        [...RULE, "successor" as const].filter((field) => field in change),
      );
      await put(change);
      say(done, () => void undoing.act(() => put(back)));
    }, question);
  const named = fields.successor.trim() || null;
  const goesOn = (change: object, done: string, question?: Question): void =>
    apply(
      isChanged("successor") ? { ...change, successor: named } : change,
      done,
      { deprecated, retired, successor: action.successor },
      question,
    );
  const retire = (): void =>
    goesOn({ retired: true }, `${name} is retired.`, {
      title: `Retire ${name}?`,
      body: "Publishing is refused with 410 from now on. Stored events can be read, and deliveries go on.",
      act: "Retire it",
      danger: true,
    });
  const changed = RULE.filter(isChanged);
  const pick = (from: CompatibilityRule): object =>
    Object.fromEntries(changed.map((field) => [field, from[field]]));
  const needsAdmin = isLooser(action, { ...action, ...pick(fields) }) && !may("admin", action.application);
  return (
    <div class="form">
      {failure !== undefined && [...RULE, "successor"].every((field) => errorAt(field) === undefined) && (
        <Say state="failed" title="Not changed">
          {failure.message}
        </Say>
      )}
      <CameBack draft={draft} />
      <FieldGroup title="Compatibility">
        <ChoiceField
          label="Protect"
          {...draft.of("compatibility")}
          choices={COMPATIBILITY_MODES.map((one) => [one, `${PROTECTED[one]} (${one})`])}
          hint="Whom a change of the schema must not break."
          error={needsAdmin ? "To protect less than before needs the scope admin." : errorAt("compatibility")}
        />
        <ChoiceField
          label="Compare with"
          {...draft.of("compatibility_against")}
          choices={[
            ["last", "the schema in force"],
            ["all", "all revisions"],
          ]}
          error={errorAt("compatibility_against")}
        />
        <div class="form-acts">
          <Button
            look="main"
            run={() => apply(pick(fields), "Compatibility is changed.", pick(action))}
            disabled={changed.length === 0 || needsAdmin}
            label="Change it"
          />
        </div>
      </FieldGroup>
      <FieldGroup title={retired ? "Retired" : deprecated ? "Deprecated" : "In force"}>
        <TextField
          label="Successor"
          {...draft.of("successor")}
          placeholder={`${name}.v2`}
          hint="The action to publish to instead. Publishers are told of it."
          error={errorAt("successor")}
        />
        <div class="form-acts">
          {(deprecated || retired) && (
            <>
              <Button
                run={() => goesOn({}, "The successor is changed.")}
                disabled={!isChanged("successor")}
                label="Change the successor"
              />
              <Button
                run={() => goesOn({ deprecated: false, retired: false }, `${name} is in force again.`)}
                label="Put in force again"
              />
            </>
          )}
          {!deprecated && !retired && (
            <Button run={() => goesOn({ deprecated: true }, `${name} is deprecated.`)} label="Deprecate" />
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
