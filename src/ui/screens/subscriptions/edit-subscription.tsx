import { Head } from "../../parts/layout.tsx";
import { refuseConflict } from "../../api/drafts.ts";
import { send } from "../../api/request.ts";
import { goTo, linkTo } from "../../parts/route.ts";
import { say } from "../../parts/toast.tsx";
import type { Subscription } from "../../../domain/subscription.ts";
import { type ReadSubscription, readSubscription } from "../../records/exact-record.ts";
import { changeBody, draftOf, EMPTY_DRAFT } from "./draft.ts";
import { useSettingsForm } from "./form-state.ts";
import { SettingsFields } from "./settings-fields.tsx";
import { SubscriptionName } from "../../records/delivery-acts.tsx";
import { CameBack, Form, FormEnd } from "../../parts/form.tsx";

/** The settings of a subscription, to change. Only what was changed is sent, so that others may change the rest. */
export function EditSubscription({ subscription }: { readonly subscription: ReadSubscription }) {
  const { rowid, application, subscription: name } = subscription;
  const { draft, wrong, failure, isBusy, act } = useSettingsForm(
    linkTo(["subscriptions", rowid, "edit"]),
    () => draftOf(subscription),
  );
  const leave = linkTo(["subscriptions", rowid]);
  return (
    <section class="stack narrow" aria-label={`Settings of ${application}/${name}`}>
      <Head
        title={
          <>
            Settings of <SubscriptionName of={subscription} />
          </>
        }
      />
      <CameBack draft={draft} />
      <Form
        send={() =>
          void act(async () => {
            const text = changeBody(draft.fields, draft.before);
            if (text !== undefined) {
              refuseConflict(draft, draftOf((await readSubscription(`/v1/subscriptions/${rowid}`)).data));
              await send<Subscription>("PUT", `/v1/subscriptions/${rowid}`, { text });
              say(`${application}/${name} is changed.`);
            }
            draft.drop();
            goTo(leave);
          })
        }
      >
        <SettingsFields draft={draft.fields} change={draft.change} wrong={wrong} isNew={false} />
        <FormEnd
          wrong={failure}
          fields={Object.keys(EMPTY_DRAFT)}
          isBusy={isBusy}
          act="Save"
          leave={leave}
          drop={draft.drop}
        />
      </Form>
    </section>
  );
}
