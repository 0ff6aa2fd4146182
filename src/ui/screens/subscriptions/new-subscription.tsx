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
  const { draft, wrong, failure, isBusy, act } = useSettingsForm(
    linkTo(["subscriptions", "new"], { application, action }),
    () => ({ ...EMPTY_DRAFT, application, action }),
  );
  useRecordName("New");
  const [created, setCreated] = useState<SubscriptionWithSecret | undefined>();
  if (!maySome("listen")) {
    return (
      <>
        <h1 class="sr">New subscription</h1>
        <Empty title="This token may not create subscriptions">It needs the scope write.</Empty>
      </>
    );
  }
  if (created !== undefined) {
    const { rowid, mode } = created;
    return (
      <SubscriptionSecret
        title={
          <>
            <SubscriptionName of={created} /> is created
          </>
        }
        of={created}
        next={
          <>
            {mode === "push" && (
              <Button look="main" to={linkTo(["subscriptions", rowid, "test"])} label="Test its handler" />
            )}
            <Button to={linkTo(["subscriptions", rowid])} label="Open it" />
          </>
        }
      />
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
          wrong={failure}
          fields={Object.keys(EMPTY_DRAFT)}
          isBusy={isBusy}
          act="Create it"
          leave={linkTo(["subscriptions"])}
          drop={draft.drop}
        />
      </Form>
    </section>
  );
}
