import {
  ACTION_QUERY,
  ACTION_UPDATE,
  ACTION_UPDATE_QUERY,
  NEW_ACTION,
  PAYLOAD,
  REVISION_QUERY,
  SCHEMA_CANDIDATE,
} from "../../domain/action.ts";
import { payloadSteps } from "../../domain/publish-body.ts";
import { eventLoop } from "../../runtime/yielding.ts";
import { META } from "../../model/meta.ts";
import { many, one, operation, type Route, SCHEMA_BODY_MAX_BYTES } from "./route.ts";

export const ACTION_ROUTES: readonly Route[] = [
  operation("actions.list", "listActions", "List actions by name", {
    query: ACTION_QUERY,
    answer: ["The actions.", many("Action")],
    run: ({ parts }, { query }) => parts.actions(query),
  }),
  operation("actions.create", "createAction", "Register an action with the schema of its payloads", {
    description:
      "Names that begin with `evreg.` are reserved for events of the service about itself: `evreg.delivery.failed`, " +
      "`evreg.subscription.blocked` and `evreg.subscription.deactivated` always exist, in " +
      "the application `evreg`. They can be read and subscribed to like any other, but not created, changed or published.",
    body: NEW_ACTION,
    status: 201,
    answer: ["The action.", one("Action", META.warnings)],
    failures: [409],
    maxBodyBytes: SCHEMA_BODY_MAX_BYTES,
  }),
  operation("actions.get", "getAction", "Get one action", { answer: ["The action.", one("Action")] }),
  operation("actions.update", "updateAction", "Apply a new schema, or change an action's settings", {
    description:
      "A schema that breaks nobody whom the action's `compatibility` protects becomes the next revision. Any other is " +
      "refused with 409, a suggested name, and `details.changes`. Each change has `side` " +
      "(`producer` or `consumer`), `pointer`, `was`, `is`, `message`, `remedy`, `certainty` (`proven` or " +
      "`cannot_prove`) and, if one was found, `example`: a payload that shows the break. " +
      "`?compatibility=none` applies the schema anyway, this once, and needs the scope `admin`. So does a " +
      "`compatibility` in the body that protects less than before. " +
      "To roll back, send the schema of an earlier revision.",
    query: ACTION_UPDATE_QUERY,
    body: ACTION_UPDATE,
    answer: ["The action.", one("Action", META.warnings)],
    failures: [409],
    maxBodyBytes: SCHEMA_BODY_MAX_BYTES,
  }),
  operation("actions.revisions", "listActionRevisions", "List an action's schemas, newest first", {
    query: REVISION_QUERY,
    answer: ["The revisions.", many("ActionRevision")],
    run: ({ parts }, { name, query }) => parts.revisions(name, query),
  }),
  operation("actions.revision", "getActionRevision", "Get one schema of an action", {
    answer: ["The revision.", one("ActionRevision")],
  }),
  operation("actions.check", "checkAction", "Check what a schema would break; changes nothing", {
    description:
      "With `replay`, the action's last events are validated against it as well. Those that do not conform do not affect `compatible`.",
    scope: "read",
    body: SCHEMA_CANDIDATE,
    answer: ["The verdict.", one("SchemaVerdict")],
    maxBodyBytes: SCHEMA_BODY_MAX_BYTES,
  }),
  operation("actions.validate", "validatePayload", "Check a payload by an action's schema", {
    description:
      "Stores nothing. The body is the payload itself, without a member `payload` around it. A payload that breaks rules is answered with 200 as well: `valid` tells. An action that takes no events, such as a retired one, is refused as publishing to it is. A token with the scope `publish` is enough too.",
    scope: "read",
    body: PAYLOAD,
    readPayload: (bytes, limits) => eventLoop.run(payloadSteps(bytes, limits)),
    answer: ["The verdict.", one("PayloadVerdict")],
    failures: [410],
  }),
  operation("actions.sample", "sampleAction", "Make up a payload that conforms to an action's schema", {
    description:
      "It is checked by the schema before it is answered. Values under `examples` and `default` are used where they " +
      "conform. The same schema gives the same payload. Where none is found the answer is 422.",
    answer: ["The payload.", one("ActionSample")],
    failures: [422],
  }),
];
