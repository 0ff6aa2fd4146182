import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { CheckedEvents, SchemaVerdict } from "../../../domain/action.ts";
import { shellWord } from "../../../domain/formats.ts";
import { nextVersionName } from "../../../domain/names.ts";
import { useDraft } from "../../api/drafts.ts";
import { ApiError, send, withQuery } from "../../api/resource.ts";
import { may } from "../../api/session.ts";
import { say, useActing } from "../../parts/acting.ts";
import { Command } from "../../parts/copy.tsx";
import { EXACT } from "../../parts/form.tsx";
import { indented, whyNoObject } from "../../parts/json-tokens.ts";
import { Button, Section } from "../../parts/layout.tsx";
import { goTo, linkTo } from "../../parts/route.ts";
import { Failed, Say } from "../../parts/states.tsx";
import { countText, numberText } from "../../parts/values.tsx";
import type { ReadAction } from "../../records/exact-record.ts";
import {
  actionPath,
  type CheckFields,
  checkForm,
  mayChange,
  type PartProps,
  useVerdict,
  type Verdict,
} from "./action-parts.tsx";
import { BreakList, DiffView } from "./diff-view.tsx";
import { diffRows, inOrder } from "./schema-diff.ts";

/** So many of the last events are checked with it. */
const REPLAY_EVENTS = 1_000;

/** Tries a schema before it is applied: what it changes, whom it breaks, and which of the last events it would refuse. */
export function CheckSchema({ action, subscribers, route }: PartProps) {
  const name = action.action;
  const draft = useDraft<CheckFields>(checkForm(name), () => ({
    text: indented(action.exactText),
  }));
  const { text } = draft.fields;
  const { isBusy, failure, act, forget } = useActing();
  const change = (next: string): void => {
    draft.change({ text: next });
    forget();
  };
  const unreadable = useMemo(() => whyNoObject(text), [text]);
  const trial = useVerdict(name, text, { replay: REPLAY_EVENTS });
  // What is shown belongs together: the differences are those of the schema that the verdict is about.
  const checked = trial?.text;
  const rows = useMemo(
    () => (checked === undefined ? undefined : diffRows(action.exactText, checked)),
    [action.exactText, checked],
  );
  const isChanged = rows?.some(({ sign }) => sign !== " ") ?? false;
  const isCurrent = checked === text;
  const verdict = trial?.verdict;
  const breaks = useMemo(() => inOrder(rows ?? [], verdict?.breaks ?? []), [rows, verdict]);
  const mayWrite = mayChange(action);

  const apply = async (force: boolean): Promise<void> => {
    const wasRead = text;
    // The revision it was compared with: the server refuses it where another has come meanwhile.
    const { data } = await send<{ readonly revision: number }>(
      "PUT",
      withQuery(actionPath(name), { compatibility: force ? "none" : undefined }),
      { text: `{"revision":${action.revision},"schemata":${wasRead}}` },
    ).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.details["field"] !== "revision") throw error;
      throw new ApiError(409, "Another schema was applied meanwhile. Compare with that one first.");
    });
    draft.drop();
    say(`Revision ${data.revision} of ${name} is in force.`);
    goTo(linkTo(["actions", name, "revisions"], { from: action.revision, to: data.revision }));
  };
  const forceIt = (): void =>
    act(() => apply(true), {
      title: `Apply a schema to ${name} that breaks others?`,
      body: `It has ${countText(breaks.length, "break")}. Producers may be refused and consumers may get what they do not expect, from now on.`,
      act: "Apply it",
      keep: "Keep the schema",
      danger: true,
      type: name,
    });

  const buttons = isCurrent && isChanged && verdict !== undefined && (
    <span class="acts row">
      {mayWrite && verdict.compatible && (
        <Button look="main" run={() => act(() => apply(false))} disabled={isBusy} label="Apply it" />
      )}
      {!verdict.compatible && may("write", action.application) && (
        <Button
          to={linkTo(["actions"], { create: nextVersionName(name), like: name })}
          label={`Create as ${nextVersionName(name)}…`}
        />
      )}
      {!verdict.compatible && mayWrite && may("admin", action.application) && (
        <Button look="danger" run={forceIt} disabled={isBusy} label="Apply it all the same…" />
      )}
    </span>
  );
  return (
    <>
      <div aria-live="polite">
        {unreadable !== undefined ? (
          <Say state="waiting" title="This is not JSON yet">
            {unreadable}
          </Say>
        ) : trial === undefined ? (
          <Say state="pending" title="Checking…" />
        ) : (
          <VerdictSay
            trial={trial}
            action={action}
            isChanged={isChanged}
            isCurrent={isCurrent}
            button={buttons}
          />
        )}
      </div>
      <Failed error={failure} title="Not applied" />
      <div class="cols even">
        <div class="stack">
          <Editor text={text} set={change} reset={draft.anew} />
          {rows !== undefined && isChanged && (
            <DiffView
              rows={rows}
              breaks={breaks}
              note={`revision ${action.revision} → this schema`}
              route={route}
            />
          )}
        </div>
        <div class="stack">
          {breaks.length > 0 && <BreakList breaks={breaks} subscribers={subscribers} />}
          {verdict !== undefined && <Warnings warnings={verdict.warnings} />}
        </div>
      </div>
      <Command
        text={`evreg actions check ${shellWord(name)} --schema schema.json --replay ${REPLAY_EVENTS}`}
      />
    </>
  );
}

function Editor(props: {
  readonly text: string;
  readonly set: (text: string) => void;
  readonly reset: () => void;
}) {
  const { text, set, reset } = props;
  return (
    <Section
      title="Schema to check"
      label="The schema to check"
      aside={
        <>
          <label class="btn bare">
            From a file…
            <input
              type="file"
              class="sr"
              accept=".json,application/json"
              onChange={(event) => {
                const file = event.currentTarget.files?.[0];
                if (file !== undefined) void file.text().then(set);
              }}
            />
          </label>
          <Button look="bare" run={reset} label="As in force" />
        </>
      }
    >
      <textarea
        class="area tall"
        aria-label="Schema to check"
        value={text}
        {...EXACT}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </Section>
  );
}

function VerdictSay(props: {
  readonly trial: Verdict;
  readonly action: ReadAction;
  readonly isChanged: boolean;
  readonly isCurrent: boolean;
  readonly button: ComponentChildren;
}) {
  const { trial, action, isChanged, isCurrent, button } = props;
  const { verdict, error } = trial;
  if (verdict === undefined) {
    const { pointer } = error?.details ?? {};
    return (
      <Say state="failed" title={error?.status === 422 ? "evreg does not take this schema" : "Not checked"}>
        {error?.message}
        {typeof pointer === "string" && pointer !== "" && ` At ${pointer}.`}
      </Say>
    );
  }
  const { compatible, breaks, replay } = verdict;
  const failed = replay !== null && replay.failed > 0;
  if (!isChanged) {
    return (
      <Say state="pending" title="Nothing changes yet">
        This is the schema in force. Change it, and the verdict comes as you type.
      </Say>
    );
  }
  const title = compatible
    ? action.compatibility === "none"
      ? "An update with this schema would be applied: nobody is protected."
      : "Compatible. An update with this schema would be applied."
    : `Not compatible: ${countText(breaks.length, "break")}. An update with this schema would be refused.`;
  return (
    <Say state={compatible ? (failed ? "waiting" : "delivered") : "failed"} title={title} button={button}>
      {isCurrent ? `Compared with revision ${action.revision}.` : "Checking what you typed since…"}{" "}
      {replay !== null && <ReplayWords replay={replay} />}
    </Say>
  );
}

const NAMED_EVENTS = 2;
const NAMED_REASONS = 3;

/** Which of the last events would not conform, by reason. */
function ReplayWords({ replay }: { readonly replay: CheckedEvents }) {
  const { checked, failed, failures } = replay;
  if (checked === 0) return <>There are no events to check.</>;
  const last = `Of the last ${countText(checked, "event")}`;
  if (failed === 0) return <>{last} all conform.</>;
  const reasons = [
    ...Map.groupBy(failures, ({ field, message }) => `${field === "" ? "the payload" : field} ${message}`),
  ];
  return (
    <>
      {last} {numberText(failed)} would not conform:{" "}
      {reasons.slice(0, NAMED_REASONS).map(([reason, events], index) => (
        <span key={reason}>
          {index > 0 && "; "}
          <code>{reason}</code> (
          {events.slice(0, NAMED_EVENTS).map(({ event }, at) => (
            <>
              {at > 0 && ", "}
              <a href={linkTo(["events", event])}>{event}</a>
            </>
          ))}
          {events.length > NAMED_EVENTS && ` and ${events.length - NAMED_EVENTS} more`})
        </span>
      ))}
      {reasons.length > NAMED_REASONS
        ? `; and for ${countText(reasons.length - NAMED_REASONS, "other reason")}.`
        : "."}
    </>
  );
}

/** What may be a mistake in the schema. The same one in several places is said once. */
function Warnings({ warnings }: { readonly warnings: SchemaVerdict["warnings"] }) {
  if (warnings.length === 0) return null;
  const kinds = [...Map.groupBy(warnings, ({ message }) => message)];
  return (
    <section class="panel" aria-label="Warnings">
      <ul class="lines">
        {kinds.map(([message, [first, ...others]]) => (
          <li key={message} class="break">
            <code>{first === undefined || first.pointer === "" ? "The schema" : first.pointer}</code>
            {others.length > 0 && ` and ${countText(others.length, "other place")}`}: {message}
          </li>
        ))}
      </ul>
    </section>
  );
}
