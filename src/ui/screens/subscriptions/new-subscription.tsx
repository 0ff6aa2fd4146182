import { useState } from "preact/hooks";
import type { SubscriptionWithSecret } from "../../../domain/subscription.ts";
import { askJson } from "../../api/request.ts";
import { SubscriptionName } from "../../parts/delivery-acts.tsx";
import { Empty } from "../../parts/states.tsx";
import { useRecordName } from "../../shell/record-name.ts";
import { linkTo } from "../../shell/route.ts";
import { EMPTY_DRAFT, newBody } from "./draft.ts";
import { useSettingsForm } from "./form-state.ts";
import { SubscriptionSecret } from "./subscription-secret.tsx";
import { SettingsFields } from "./settings-fields.tsx";
import { mayCreate } from "./subscription-list.tsx";
import { CameBack, Form, Wrong } from "../../parts/form.tsx";

/** A form for a new subscription. Its secret is shown once, when it is there. */
export function NewSubscriptionForm({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { application = "", action = "" } = query;
  const { draft, wrong, isSending, send } = useSettingsForm(
    linkTo(["subscriptions", "new"], { application, action }),
    () => ({ ...EMPTY_DRAFT, application, action }),
  );
  useRecordName("New");
  const [created, setCreated] = useState<SubscriptionWithSecret | undefined>();
  const [isKept, setKept] = useState(false);
  if (!mayCreate()) {
    return (
      <>
        <h1 class="sr">New subscription</h1>
        <Empty title="This token may not create subscriptions">It needs the scope write.</Empty>
      </>
    );
  }
  if (created !== undefined) {
    return (
      <section class="stack narrow">
        <h1>
          <SubscriptionName of={created} /> is created
        </h1>
        <div class="panel pad">
          <SubscriptionSecret
            secret={created.secret}
            isPush={created.mode === "push"}
            isKept={isKept}
            keep={() => setKept(true)}
          />
        </div>
        <div class="form-acts">
          {!isKept && (
            <button class="btn main" onClick={() => setKept(true)}>
              I have kept it
            </button>
          )}
          {isKept && created.mode === "push" && (
            <a class="btn main" href={linkTo(["subscriptions", created.rowid, "test"])}>
              Test its handler
            </a>
          )}
          {isKept && (
            <a class="btn" href={linkTo(["subscriptions", created.rowid])}>
              Open it
            </a>
          )}
        </div>
      </section>
    );
  }
  return (
    <section class="stack narrow" aria-label="New subscription">
      <header class="head">
        <div class="what">
          <h1>New subscription</h1>
          <p class="lede">It gets the events of its action that are published from now on.</p>
        </div>
      </header>
      <CameBack draft={draft} />
      <Form
        send={() =>
          send(async () => {
            const text = newBody(draft.fields);
            setCreated(
              (await askJson<SubscriptionWithSecret>("/v1/subscriptions", { method: "POST", text })).data,
            );
            draft.drop();
            scrollTo({ top: 0 });
          })
        }
      >
        <SettingsFields draft={draft.fields} change={draft.change} wrong={wrong} isNew />
        <FormEnd
          wrong={wrong}
          isSending={isSending}
          act="Create it"
          leave={linkTo(["subscriptions"])}
          drop={draft.drop}
        />
      </Form>
    </section>
  );
}

/** The buttons of a form, and what is wrong with all of it. */
export function FormEnd(props: {
  readonly wrong: { readonly field?: string | undefined; readonly message: string } | undefined;
  readonly isSending: boolean;
  readonly act: string;
  readonly leave: string;
  /** Forgets what was typed. */
  readonly drop: () => void;
  readonly mayAct?: boolean;
}) {
  const { wrong, isSending, act, leave, drop, mayAct } = props;
  return (
    <div class="form-acts form-end">
      <button class="btn main" disabled={isSending || mayAct === false}>
        {act}
      </button>
      <a class="btn" href={leave} onClick={drop}>
        Cancel
      </a>
      <Wrong text={wrong?.field === undefined ? wrong?.message : "Something above is wrong."} />
    </div>
  );
}
