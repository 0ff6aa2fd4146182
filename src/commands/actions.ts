import { type Command, Flags } from "@oclif/core";
import { TargetCommand, examples } from "../cli/base-command.ts";
import {
  definedOnly,
  modeFlag,
  numberFlag,
  schemaFlag,
  textArg,
  textFlag,
  choiceFlag,
  requiredFlag,
} from "../cli/flags.ts";
import { type About, listCommand, recordCommand } from "../cli/resource-command.ts";
import { escapeControlInJson, flagWords } from "../cli/io/text.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { readSchema } from "../cli/schema-file.ts";
import { usageError } from "../cli/usage-errors.ts";
import { ACTION_CHANGED, ACTIONS, REVISIONS } from "../cli/views/actions.ts";

export const ActionsList = listCommand(ACTIONS, {
  summary: "List the actions: what can be published, and by which schema.",
  examples: examples({
    "All of them": "evreg actions",
    "Those of one application": "evreg actions list --application shop",
    "Their names only": "evreg actions --json | jq -r '.data[].action'",
  }),
  flags: {
    application: textFlag("Only those this application owns.", "NAME"),
  },
});

export const ActionsGet = recordCommand(ACTIONS, "get", {
  summary: "Show one action with its schema.",
  examples: examples("evreg actions get order.created", {
    "Its schema into a file, to edit it":
      "evreg actions get order.created --json | jq .data.schemata > schema.json",
  }),
});

export class ActionsCreate extends TargetCommand {
  static override summary = "Create an action: a name, its owner and the JSON Schema of its payloads.";
  static override description =
    "Names that begin with evreg. are reserved for events about evreg itself. You can subscribe to those like to any other.";
  static override examples = examples(
    "evreg actions create order.created --application shop --schema order.json",
    {
      "A schema on the command line": `evreg actions create order.created --application shop --schema '{"required": ["id"]}'`,
    },
  );
  static override args = { name: textArg("Name, in segments joined by dots: order.created") };
  static override flags = {
    application: requiredFlag("The application that owns it.", "NAME"),
    schema: schemaFlag({ required: true }),
    mode: modeFlag("Whom later changes of the schema must not break (default full)."),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ActionsCreate);
    const schemata = await readSchema(flags.schema);
    const { application, mode: compatibility } = flags;
    const input = { action: args.name, application, schemata, ...definedOnly({ compatibility }) };
    await this.showRecord(flags, ACTION_CHANGED, ({ actions }) => actions.create(input), {
      creates: "folder",
    });
  }
}

export class ActionsSample extends TargetCommand {
  static override summary = "Make up a payload that conforms to an action's schema.";
  static override description =
    'It is checked by the schema before it is shown. Values that the schema gives as "examples" or "default" are taken where they conform. The same schema gives the same payload.';
  static override examples = examples("evreg actions sample order.created", {
    "Publish it, to try a handler":
      "evreg actions sample order.created | evreg publish order.created - --wait",
  });
  static override args = { name: textArg("Name of the action.") };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ActionsSample);
    const answer = await this.withTarget(flags, ({ actions }) => actions.sample(args.name));
    const text = `${JSON.stringify(answer.data.payload, null, 2)}\n`;
    await this.outputFor(flags).text(answer, () => escapeControlInJson(text));
  }
}

export class ActionsUpdate extends TargetCommand {
  static override summary = "Apply a changed schema to an action, or change how its schema may change.";
  static override description =
    "A schema that breaks nobody whom the action's mode protects becomes the next revision: one with a new optional property, for example. A schema that would break someone is refused (exit code 5). Each break is shown with its place in the schema, a payload that proves it, and what you can do instead. Create a new action for such a schema, like order.created.v2. The mode is full (who publishes and who reads), producer, consumer or none.";
  static override examples = examples("evreg actions update order.created --schema order.json", {
    "Apply a breaking change all the same, this once (scope admin)":
      "evreg actions update order.created --schema order.json --compatibility none",
    "From now on protect who publishes, and not who reads (scope admin)":
      "evreg actions update order.created --mode producer",
  });
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    schema: schemaFlag(),
    mode: modeFlag(
      "Whom changes must not break from now on, this one included; protecting less needs the scope admin.",
    ),
    compatibility: choiceFlag("none: apply this schema even if it breaks someone.", ["none"], {
      dependsOn: ["schema"],
    }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ActionsUpdate);
    const { schema, mode } = flags;
    if (schema === undefined && mode === undefined) {
      throw usageError("Nothing to change: give --schema or --mode.");
    }
    const schemata = schema === undefined ? undefined : await readSchema(schema);
    const options = definedOnly({ compatibility: flags.compatibility });
    let isSame = false;
    const output = await this.showRecord(flags, ACTION_CHANGED, async ({ actions }) => {
      // A token may be allowed to write and not to read.
      const before = schemata && (await actions.get(args.name).catch(() => undefined));
      const change = definedOnly({ schemata, compatibility: mode });
      const answer = await actions.update(args.name, change, options);
      isSame = before?.data.revision === answer.data.revision;
      return answer;
    });
    if (isSame) output.note("The schema is the same as before; there is no new revision.");
  }
}

export const ActionsDeprecate = endCommand("deprecated", "Not deprecated any more.", {
  summary: "Ask the publishers of an action to use another one.",
  description:
    "Publishing still works. Each answer says so and names the successor, and evreg publish prints a warning.",
  examples: examples("evreg actions deprecate order.created --successor order.created.v2", {
    "Undo it": "evreg actions deprecate order.created --undo",
  }),
});

export const ActionsRetire = endCommand("retired", "Take events again.", {
  summary: "Refuse further events of an action.",
  description:
    "Publishing is refused with 410 and the name of the successor. Only a request that repeats the idempotency key of an older event is answered with that event. Reading still works, and so do its deliveries, replays and subscriptions.",
  examples: examples("evreg actions retire order.created --successor order.created.v2", {
    "Undo it": "evreg actions retire order.created --undo",
  }),
});

/** A command that ends an action, in part or wholly. @param undone what `--undo` does */
function endCommand(setting: "deprecated" | "retired", undone: string, about: About): Command.Class {
  class EndCommand extends TargetCommand {
    static override args = { name: textArg("Name of the action.") };
    static override flags = {
      successor: textFlag("The action to publish to instead.", "NAME", { exclusive: ["undo"] }),
      undo: Flags.boolean({ summary: undone }),
    };

    async run(): Promise<void> {
      const { args, flags } = await this.parse(EndCommand);
      const change = { [setting]: !flags.undo, ...definedOnly({ successor: flags.successor }) };
      const output = await this.showRecord(flags, ACTION_CHANGED, ({ actions }) =>
        actions.update(args.name, change),
      );
      if (!flags.undo) {
        output.note(
          `Who is subscribed to it: ${nextCommand(`subscriptions list${flagWords({ action: args.name })}`)}`,
        );
      }
    }
  }
  return Object.assign(EndCommand, about);
}

export class ActionsHistory extends TargetCommand {
  static override summary = "List the schemas an action has had, newest first.";
  static override description =
    "Each event names the revision that it was checked by. To go back, apply an older one again with actions update.";
  static override examples = examples("evreg actions history order.created", {
    "The last two schemas, to compare":
      "evreg actions history order.created --json | jq '.data[:2][].schemata'",
    "The schema of the first revision, which is the last of the list": `evreg actions history order.created --json | jq '.data[-1].schemata'`,
  });
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    limit: numberFlag("At most so many, 1 to 50 (default 20)."),
    after: numberFlag("Only revisions older than this one.", { helpValue: "REVISION" }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ActionsHistory);
    const query = definedOnly({ limit: flags.limit, after: flags.after });
    const answer = await this.withTarget(flags, ({ actions }) => actions.revisions(args.name, query));
    const none = `There is no revision older than ${flags.after}.`;
    await this.outputFor(flags).list(answer, REVISIONS, none);
  }
}
