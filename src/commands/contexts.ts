import { Flags } from "@oclif/core";
import { BaseCommand, examples } from "../cli/base-command.ts";
import { optionalArg, requiredFlag, textArg, textFlag } from "../cli/flags.ts";
import { note } from "../cli/io/output.ts";
import { plainCommand } from "../cli/target/next-command.ts";
import { escapeControl } from "../cli/io/text.ts";
import { readToken } from "../cli/io/prompts.ts";
import { usageError } from "../cli/usage-errors.ts";
import { checkName, type Context, Contexts } from "../config/contexts.ts";
import { EvregError } from "../domain/error.ts";
import type { Identity } from "../domain/token.ts";
import { identityColumns } from "../cli/views/tokens.ts";
import { withoutUserInfo } from "../domain/formats.ts";
import { linesOf, listOf, type ShownMembers, titled } from "../cli/views/view.ts";

export class ContextList extends BaseCommand {
  static override aliases = ["context"];
  static override summary = "List the contexts: named servers, each with its token.";
  static override description =
    "Commands act on the context in use, unless a flag, a variable or the configuration file names a server or a data folder. Contexts are stored in your own settings folder; only you can read them.";
  static override examples = examples("evreg context", {
    "Names and addresses only": "evreg context --json | jq -r '.data[] | [.name, .url] | @tsv'",
  });

  async run(): Promise<void> {
    const { flags } = await this.parse(ContextList);
    const contexts = new Contexts(this.config.configDir);
    const inUse = contexts.inUse();
    const data = contexts.names().map((name) => shownByName(contexts, name, inUse));
    await this.outputFor(flags).list(
      { data },
      CONTEXT_LIST,
      "No contexts yet. Add one: evreg context add NAME --url URL --token-file FILE",
    );
    if (inUse !== undefined && !contexts.has(inUse)) {
      note(
        `The context in use, ${escapeControl(inUse)}, is not there. Use another: ${plainCommand("context use NAME")}, or ${plainCommand("context use --none")}.`,
      );
    }
  }
}

/** A damaged one must not hide the others, and can be removed: a warning says what is wrong with it. `not_found`. */
function shownByName(contexts: Contexts, name: string, inUse: string | undefined): ContextShown {
  try {
    return shownContext(contexts.get(name), inUse);
  } catch (error) {
    if (!(error instanceof EvregError) || error.code !== "usage") throw error;
    note(`Warning: ${escapeControl(error.message)}`);
    return { name, url: null, has_token: null, in_use: name === inUse };
  }
}

export class ContextAdd extends BaseCommand {
  static override summary = "Store a server's address and token under a name.";
  static override description =
    "The server is asked first who you are with the token. If it refuses or does not answer, nothing is stored, unless you give --no-check. The token comes from a file or stdin, never from the command line. It is stored in a file that only you can read.";
  static override examples = examples({
    "Type the token; it is not shown":
      "evreg context add prod --url https://events.example.com --token-file - --use",
    "From a password manager":
      "pass evreg/staging | evreg context add staging --url https://staging.example.com --token-file -",
    "Another token for it":
      "evreg context add prod --url https://events.example.com --token-file new.token --replace",
  });
  static override args = { name: textArg("Name of the context: lower-case letters, digits and . _ -") };
  static override flags = {
    url: requiredFlag("The server's address.", "URL"),
    "token-file": textFlag(
      "A file (- for stdin) that holds the token; a server started with --dev needs none.",
      "FILE",
    ),
    use: Flags.boolean({ summary: "Use it from now on." }),
    replace: Flags.boolean({ summary: "Replace the context of that name, if there is one." }),
    check: Flags.boolean({
      summary: "Ask the server first whether address and token are right (default).",
      allowNo: true,
      default: true,
    }),
    "allow-insecure-token": Flags.boolean({
      summary: "Let the token go over http: to another machine, where whoever is in between can read it.",
      env: "EVREG_ALLOW_INSECURE_TOKEN",
    }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ContextAdd);
    const { name } = args;
    const contexts = new Contexts(this.config.configDir);
    checkName(name);
    if (!flags.replace && contexts.has(name)) {
      const message = `There is a context ${name} already. Choose another name, or replace it with --replace.`;
      throw new EvregError("conflict", message, { name });
    }
    const file = flags["token-file"];
    const context: Context = {
      name,
      url: flags.url.replace(/\/+$/, ""),
      ...(file === undefined ? {} : { token: await readToken(file) }),
      ...(flags["allow-insecure-token"] ? { allowInsecureToken: true } : {}),
    };
    const you = await identityAt(context, flags.check);
    contexts.save(context);
    if (flags.use) contexts.use(name);

    const data = shownContext(context, contexts.inUse());
    const output = this.outputFor(flags);
    if (you === undefined) await output.record({ data }, CONTEXT_RECORD);
    else if (output.format === "table") {
      const target = { kind: "remote", location: data.url, context: name } as const;
      await output.record({ data: you }, identityColumns(target));
    } else await output.record({ data, meta: { you } }, CONTEXT_RECORD);
    if (!data.in_use)
      output.note(`Act on it by default: ${plainCommand(`context use ${name}`)}. Or once: --context ${name}`);
  }
}

/** @param isChecked whether to ask the server; the form of address and token is checked in any case */
async function identityAt(context: Context, isChecked: boolean): Promise<Identity | undefined> {
  const { connect } = await import("../client/client.ts");
  const evreg = connect(context);
  try {
    return isChecked ? (await evreg.whoami()).data : undefined;
  } finally {
    await evreg.close();
  }
}

export class ContextUse extends BaseCommand {
  static override usage = "context use NAME | --none";
  static override summary = "Choose the context that commands act on.";
  static override examples = examples("evreg context use prod", {
    "Back to the data folder": "evreg context use --none",
    "For this shell only": "EVREG_CONTEXT=prod; export EVREG_CONTEXT; evreg whoami",
  });
  static override args = { name: optionalArg("Name of the context.") };
  static override flags = {
    none: Flags.boolean({ summary: "None: commands act on the data folder again." }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ContextUse);
    const contexts = new Contexts(this.config.configDir);
    // One of the two, not both.
    if (flags.none ? args.name !== undefined : args.name === undefined)
      throw usageError("Name the context to use, or give --none.");
    const output = this.outputFor(flags);
    if (args.name === undefined) {
      contexts.useNone();
      if (output.format === "table") note("No context is in use.");
      else await output.document({ data: null });
      return;
    }
    contexts.use(args.name);
    await output.record({ data: shownContext(contexts.get(args.name), args.name) }, CONTEXT_RECORD);
  }
}

export class ContextRemove extends BaseCommand {
  static override summary = "Remove a context and its token.";
  static override description =
    "The token itself stays valid; evreg tokens revoke ends it. If the context was in use, none is afterwards.";
  static override examples = ["evreg context remove staging"];
  static override args = { name: textArg("Name of the context.") };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ContextRemove);
    const contexts = new Contexts(this.config.configDir);
    const data = shownByName(contexts, args.name, contexts.inUse());
    contexts.remove(args.name);
    const output = this.outputFor(flags);
    await output.record({ data: { ...data, in_use: false } }, REMOVED_CONTEXT);
    const removed = data.has_token ? "Removed, with its token" : "Removed";
    output.note(data.in_use ? `${removed}; no context is in use now.` : `${removed}.`);
  }
}

/** A context as it is shown: never with its token. Of one whose file cannot be read only the name is known. */
interface ContextShown {
  readonly name: string;
  readonly url: string | null;
  readonly has_token: boolean | null;
  readonly in_use: boolean;
}

function shownContext({ name, url, token }: Context, inUse: string | undefined) {
  return { name, url: withoutUserInfo(url), has_token: token !== undefined, in_use: name === inUse };
}

const CONTEXT = titled({ name: "Context", url: "URL", has_token: "Token", in_use: "In use" });

const SHOWN: ShownMembers<ContextShown> = {
  has_token: ({ has_token }) => (has_token === null ? null : has_token ? "kept" : "none"),
  in_use: ({ in_use }) => (in_use ? "yes" : "no"),
};

const CONTEXT_LIST = listOf(CONTEXT, SHOWN, {
  name: { shrinkTo: 8 },
  url: { shrinkTo: 16 },
  has_token: {},
  in_use: { value: ({ in_use }) => (in_use ? "yes" : ""), color: () => "green" },
});

const CONTEXT_RECORD = linesOf(CONTEXT, SHOWN);

/** Nothing is stored of it any more. */
const REMOVED_CONTEXT = CONTEXT_RECORD.slice(0, 2);
