import type { ActionUpdate, NewAction } from "../domain/action.ts";
import { ACTION_QUERY, ACTION_UPDATE, ACTION_UPDATE_QUERY, NEW_ACTION } from "../domain/requests.ts";
import { parseJson } from "../json/parse.ts";
import { many, one, WARNINGS } from "./records.ts";
import { reply } from "./reply.ts";
import { BODY_MAX_BYTES } from "./route.ts";
import type { Route } from "./route.ts";

const tag = "actions";

export const ACTION_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/actions",
    operationId: "listActions",
    tag,
    summary: "All actions, by name",
    access: "token",
    scope: "read",
    query: ACTION_QUERY,
    answers: { 200: { description: "The actions.", schema: many("Action") } },
    failures: [],
    async handle(evreg, incoming) {
      return reply(200, await evreg.actions.list(incoming.query(ACTION_QUERY)));
    },
  },
  {
    method: "POST",
    path: "/v1/actions",
    operationId: "createAction",
    tag,
    summary: "Register an action with the schema its payloads conform to",
    access: "token",
    scope: "write",
    body: NEW_ACTION,
    answers: { 201: { description: "The action.", schema: one("Action", WARNINGS) } },
    failures: [409],
    async handle(evreg, incoming) {
      const input = parseJson(await incoming.body(BODY_MAX_BYTES)) as NewAction;
      return reply(201, await evreg.actions.create(input));
    },
  },
  {
    method: "GET",
    path: "/v1/actions/:name",
    operationId: "getAction",
    tag,
    summary: "One action",
    access: "token",
    scope: "read",
    answers: { 200: { description: "The action.", schema: one("Action") } },
    failures: [404],
    async handle(evreg, incoming) {
      return reply(200, await evreg.actions.get(incoming.param("name")));
    },
  },
  {
    method: "PUT",
    path: "/v1/actions/:name",
    operationId: "updateAction",
    tag,
    summary: "Apply a schema as the action's next revision",
    description:
      "A change that breaks neither those who publish nor those who receive is applied. A breaking one is 409 with a " +
      "suggested name and `details.changes`, each with `side` (`producer` or `consumer`), `pointer`, `was`, `is`, `message`, " +
      "`remedy`, `certainty` (`proven` or `cannot_prove`) and, where one was found, `example`: a payload that shows it. " +
      "`compatibility=none` applies it all the same and needs the scope `admin`.",
    access: "token",
    scope: "write",
    query: ACTION_UPDATE_QUERY,
    body: ACTION_UPDATE,
    answers: { 200: { description: "The action.", schema: one("Action", WARNINGS) } },
    failures: [404, 409],
    async handle(evreg, incoming) {
      const options = incoming.query(ACTION_UPDATE_QUERY) as { compatibility?: "none" };
      const input = parseJson(await incoming.body(BODY_MAX_BYTES)) as ActionUpdate;
      return reply(200, await evreg.actions.update(incoming.param("name"), input, options));
    },
  },
];
