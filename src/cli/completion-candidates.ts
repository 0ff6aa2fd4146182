import { Contexts } from "../config/contexts.ts";
import { loadConfig } from "../config/load.ts";
import type { Evreg } from "../evreg.ts";
import { ACTIONS } from "./views/actions.ts";
import { REPLAYS } from "./views/replays.ts";
import { TOKENS } from "./views/tokens.ts";
import { type Candidate, type FlagValues, type NameKind, unquoted } from "./completion.ts";
import { subscriptionNames } from "./subscriptions/name.ts";
import { readCredential } from "./io/prompts.ts";
import { serverFor } from "./target/target.ts";

/** The largest answer that is read at the press of a key. */
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
  const token = file === undefined ? typed("token") : await readCredential("token-file", file);
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
    action: async (evreg) => (await evreg.actions.list()).data.map(ACTIONS.label),
    application: async (evreg) => {
      const [actions, subscriptions] = await Promise.all([evreg.actions.list(), evreg.subscriptions.list()]);
      const names = [...actions.data, ...subscriptions.data].map(({ application }) => application);
      return [...new Set(names)].toSorted().map((value) => ({ value }));
    },
    subscription: async (evreg) => subscriptionNames((await evreg.subscriptions.list()).data),
    replay: async (evreg) => (await evreg.replays.list()).data.map(REPLAYS.label),
    token: async (evreg) => (await evreg.tokens.list()).data.map(TOKENS.label),
  };
