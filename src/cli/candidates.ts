import { Contexts } from "../config/contexts.ts";
import { loadConfig } from "../config/load.ts";
import { isReservedName } from "../domain/names.ts";
import type { Evreg } from "../evreg.ts";
import { type Candidate, type FlagValues, type NameKind, unquoted } from "./completion.ts";
import { serverFor, tokenIn } from "./target/target.ts";

/** Of an answer with names; a registry with more is not asked for whole at the press of a key. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/**
 * The names of a kind, from the server that the command would ask. A data folder without a server is not opened: that
 * would hold it, and may change it.
 * @param flags what is typed before the cursor, quoted as it is
 * @param configFolder that of this user's settings for evreg
 */
export async function candidatesFor(
  kind: NameKind,
  flags: FlagValues,
  configFolder: string,
): Promise<readonly Candidate[]> {
  if (kind === "context") {
    const contexts = new Contexts(configFolder);
    return contexts.names().map((value) => ({ value, about: contexts.get(value).url }));
  }
  const typed = (name: string) => (flags[name] === undefined ? undefined : unquoted(flags[name]));
  const file = typed("token-file");
  // Nobody types a token while a name is being completed.
  if (file === "-") return [];
  const token = file === undefined ? typed("token") : await tokenIn(file);
  const [url, data, context] = [typed("url"), typed("data"), typed("context")];
  const where = { url, data, context, token };
  const loaded = await loadConfig({
    flags: where,
    env: process.env,
    cwd: process.cwd(),
    configFile: typed("config"),
  });
  const server = await serverFor(where, loaded, configFolder);
  if (server === undefined) return [];
  const { connect } = await import("../client/client.ts");
  const { allowInsecureToken } = server;
  const evreg = connect({
    url: server.url,
    ...(server.token === undefined ? {} : { token: server.token }),
    allowInsecureToken,
    maxAnswerBytes: MAX_ANSWER_BYTES,
  });
  try {
    return await NAMES[kind](evreg);
  } finally {
    await evreg.close();
  }
}

/** What the server has of each kind. They throw as the port does. */
const NAMES: Readonly<Record<Exclude<NameKind, "context">, (evreg: Evreg) => Promise<readonly Candidate[]>>> =
  {
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
