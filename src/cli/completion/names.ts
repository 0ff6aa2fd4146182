import type { Evreg } from "../../evreg.ts";
import type { Candidate, NameKind } from "./slot.ts";
import { isReservedName } from "../../domain/names.ts";

/** What the server has of each kind. They throw as the port does. */
export const NAMES: Readonly<
  Record<Exclude<NameKind, "context">, (evreg: Evreg) => Promise<readonly Candidate[]>>
> = {
  action: async (evreg) => {
    const { data } = await evreg.actions.list();
    return data.map(({ action, application }) => ({ value: action, about: application }));
  },
  successor: async (evreg) => {
    const { data } = await evreg.actions.list();
    return data
      .filter(({ action, retired }) => !retired && !isReservedName(action))
      .map(({ action, application }) => ({ value: action, about: application }));
  },
  application: async (evreg) => {
    const [actions, subscriptions] = await Promise.all([evreg.actions.list(), evreg.subscriptions.list()]);
    const names = [...actions.data, ...subscriptions.data].map(({ application }) => application);
    return [...new Set(names)].toSorted().map((value) => ({ value }));
  },
  subscription: async (evreg) => {
    const { data } = await evreg.subscriptions.list();
    return data.map(({ rowid, application, subscription, action }) => ({
      value: String(rowid),
      about: `${application}/${subscription} ${action}`,
    }));
  },
  replay: async (evreg) => {
    const { data } = await evreg.replays.list();
    return data.map(({ rowid, status, application, subscription }) => ({
      value: String(rowid),
      about: `${application}/${subscription} ${status}`,
    }));
  },
  token: async (evreg) => {
    const { data } = await evreg.tokens.list();
    return data.map(({ rowid, name, scopes }) => ({
      value: String(rowid),
      about: `${name} ${scopes.join(" ")}`,
    }));
  },
};
