import { Button } from "../../parts/button.tsx";
import { useState } from "preact/hooks";
import type { SubscriptionWithSecret } from "../../../domain/subscription.ts";
import { maySome } from "../../api/identity.ts";
import { send } from "../../api/request.ts";
import { SubscriptionName } from "../../records/delivery-acts.tsx";
import { Head } from "../../parts/layout.tsx";
import { Empty } from "../../parts/states.tsx";
import { useRecordName, linkTo } from "../../parts/route.ts";
import { EMPTY_DRAFT, newBody } from "./draft.ts";
import { useSettingsForm } from "./form-state.ts";
import { SubscriptionSecret } from "./subscription-secret.tsx";
import { SettingsFields } from "./settings-fields.tsx";
import { CameBack, Form, FormEnd } from "../../parts/form.tsx";

/** A form for a new subscription. Its secret is shown once, when it is there. */
export function NewSubscriptionForm({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { application = "", action = "" } = query;
  const { draft, wrong, isBusy, act } = useSettingsForm(
    linkTo(["subscriptions", "new"], { application, action }),
    () => ({ ...EMPTY_DRAFT, application, action }),
  );
  useRecordName("New");
  const [created, setCreated] = useState<SubscriptionWithSecret | undefined>();
  const [isKept, setKept] = useState(false);
  if (!maySome("listen")) {
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
          {!isKept && <Button look="main" run={() => setKept(true)} label="I have kept it" />}
          {isKept && created.mode === "push" && (
            <Button
              look="main"
              to={linkTo(["subscriptions", created.rowid, "test"])}
              label="Test its handler"
            />
          )}
          {isKept && <Button to={linkTo(["subscriptions", created.rowid])} label="Open it" />}
        </div>
      </section>
    );
  }
  return (
    <section class="stack narrow" aria-label="New subscription">
      <Head
        title="New subscription"
        lede="It gets the events of its action that are published from now on."
      />
      <CameBack draft={draft} />
      <Form
        send={() =>
          void act(async () => {
            const text = newBody(draft.fields);
            setCreated((await send<SubscriptionWithSecret>("POST", "/v1/subscriptions", { text })).data);
            draft.drop();
            scrollTo({ top: 0 });
          })
        }
      >
        <SettingsFields draft={draft.fields} change={draft.change} wrong={wrong} isNew />
        <FormEnd
          wrong={wrong}
          isBusy={isBusy}
          act="Create it"
          leave={linkTo(["subscriptions"])}
          drop={draft.drop}
        />
      </Form>
    </section>
  );
}
