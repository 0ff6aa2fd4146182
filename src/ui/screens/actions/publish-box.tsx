import { useEffect, useRef, useState } from "preact/hooks";
import type { Event } from "../../../domain/event.ts";
import { shellWord } from "../../../domain/formats.ts";
import { isReservedName } from "../../../domain/names.ts";
import { useDraft } from "../../api/drafts.ts";
import { type ApiError, askJson, newAttemptKey } from "../../api/resource.ts";
import { may } from "../../api/session.ts";
import { useActing } from "../../parts/acting.ts";
import { Command } from "../../parts/copy.tsx";
import { CameBack, EXACT } from "../../parts/form.tsx";
import { indented, whyNoObject } from "../../parts/json-tokens.ts";
import { Button, Section } from "../../parts/layout.tsx";
import { linkTo } from "../../parts/route.ts";
import { Empty, Say } from "../../parts/states.tsx";
import { countText } from "../../parts/values.tsx";
import { readSample } from "../../records/exact-record.ts";
import { actionPath, type PartProps } from "./action-parts.tsx";

interface TypedEvent {
  readonly text: string;
  /** Stays the same until the event is known to be stored, also over a reload. */
  readonly key: string;
  readonly isMadeUp: boolean;
}

const newEvent = (): TypedEvent => ({ text: "", key: newAttemptKey(), isMadeUp: false });

/** Publishes one event, made up or written by hand. */
export function PublishBox({ action, subscribers }: PartProps) {
  const name = action.action;
  const draft = useDraft(linkTo(["actions", name, "publish"]), newEvent);
  const { text, key, isMadeUp } = draft.fields;
  const [published, setPublished] = useState<number | undefined>();
  const { isBusy, failure, act, forget } = useActing();
  // A sample that is long in coming must keep nobody from publishing what was typed, nor replace it.
  const sampling = useActing();
  const typed = useRef(false);
  const sample = (): void =>
    sampling.act(async () => {
      setPublished(undefined);
      forget();
      const { data } = await readSample(`${actionPath(name)}/sample`);
      if (typed.current) return;
      draft.begin({ text: indented(data.exactText), key: newAttemptKey(), isMadeUp: true });
    });
  useEffect(() => {
    if (draft.typedAt === undefined) sample();
  }, []);
  const publish = (): void =>
    act(async () => {
      setPublished(undefined);
      sampling.forget();
      // The payload goes as it was written, to the byte.
      const body = `{"action":${JSON.stringify(name)},"idempotency_key":"${key}","payload":${text}}`;
      const { data } = await askJson<Event>("/v1/events", { method: "POST", text: body });
      draft.begin({ key: newAttemptKey() });
      setPublished(data.rowid);
    });
  const isReserved = isReservedName(name);
  if (isReserved || !may("publish", action.application)) {
    return (
      <div class="panel">
        <Empty title={isReserved ? "evreg publishes these itself" : "This token may not publish them"}>
          {isReserved
            ? "They tell of what happens in it, and can be subscribed to like any other."
            : "That needs the scope publish."}
        </Empty>
      </div>
    );
  }
  const refused = failure ?? sampling.failure;
  const unreadable = text.trim() === "" ? "Write a payload, or make one up." : whyNoObject(text);
  return (
    <div class="stack">
      <div aria-live="polite">
        {published !== undefined && (
          <Say
            state="delivered"
            title={`Published as event ${published}.`}
            button={<Button to={linkTo(["events", published])} label="See where it goes" />}
          />
        )}
        {refused !== undefined && <Refused error={refused} />}
      </div>
      <CameBack draft={draft} />
      <Section
        title="Payload"
        note={isMadeUp && "made up"}
        aside={
          <Button
            look="bare"
            disabled={sampling.isBusy}
            run={() => {
              typed.current = false;
              sample();
            }}
            label="Make one up"
          />
        }
      >
        <textarea
          class="area tall"
          aria-label="Payload"
          aria-invalid={failure?.status === 422}
          value={text}
          {...EXACT}
          onInput={(event) => {
            typed.current = true;
            draft.change({ text: event.currentTarget.value, key: newAttemptKey(), isMadeUp: false });
          }}
        />
      </Section>
      <div class="row">
        <Button look="main" run={publish} disabled={isBusy || unreadable !== undefined} label="Publish it" />
        <span class="muted">
          {unreadable ??
            (subscribers === undefined
              ? "It is stored, and goes to all who subscribe."
              : `It is stored, and goes to ${countText(subscribers.length, "subscription")}.`)}
        </span>
      </div>
      <Command
        text={
          isMadeUp
            ? [`evreg actions sample ${shellWord(name)}`, `evreg publish ${shellWord(name)} -`]
            : `evreg publish ${shellWord(name)} payload.json`
        }
      />
    </div>
  );
}

const UNKNOWN = "No answer came. Publish it again: it is stored once";

/** Why it was refused: each rule that the payload breaks, with where. */
function Refused({ error }: { readonly error: ApiError }) {
  const listed = error.details["errors"];
  const errors = Array.isArray(listed)
    ? (listed as readonly { readonly field: string; readonly message: string }[])
    : [];
  return (
    <Say state="failed" title={error.status === 0 ? UNKNOWN : "Not published"}>
      {errors.length === 0
        ? error.message
        : errors.map(({ field, message }) => (
            <span key={field + message} class="line">
              <code>{field === "" ? "the payload" : field}</code> {message}
            </span>
          ))}
    </Say>
  );
}
