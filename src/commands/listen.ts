import { Flags } from "@oclif/core";
import { examples, TargetCommand } from "../cli/base-command.ts";
import { textFlag } from "../cli/flags.ts";
import { interruption } from "../cli/io/interruption.ts";
import { note } from "../cli/io/output.ts";
import { escapeControl } from "../cli/io/text.ts";
import { execute, forwardTo, type LocalAttempt, localUrl } from "../cli/listen/attempts.ts";
import { listen, listenReport } from "../cli/listen/listen.ts";
import { nameOf, noteOthers, subscriptionsFor } from "../cli/listen/subscriptions.ts";
import { usageError } from "../cli/usage-errors.ts";
import { systemClock } from "../runtime/clock.ts";

/** Supervisors kill some ten seconds after they ask for the end. */
const GRACE_MS = 5_000;

export class Listen extends TargetCommand {
  static override summary = "Receive events on this machine: forward them to a program, or see them.";
  static override description = `A pull subscription named listen-USER@HOST takes them, one for each --action. It is made at the first use, and deleted 24 hours after the last one. What is published while nobody listens waits there: a laptop that sleeps and a server that restarts lose nothing.

--forward-to sends each event as a handler gets it, with the very bytes and signature. What the program answers becomes the result of the attempt: 200 to 299 is done, all else is retried by the server: 20 times over days where evreg listen made the subscription, so a program may be down. To send at once what waits, there is subscriptions replay ID --status waiting. --exec runs a command of the shell, with the payload on stdin. Exit code 0 is done. EVENT_ACTION, EVENT_ID, EVENT_DELIVERY and EVENT_ATTEMPT are in its environment, and the headers as CGI names them, such as HTTP_WEBHOOK_ID. --print only shows the events.

Two listeners of one name share its events, each gets a part: it is for a program. To only watch, use evreg events tail, which shows all events to everybody who runs it and makes no subscription; or give each listener a name of its own with --subscription.

What it forwards is signed with the secret of its own subscription, which is shown when it is made. A program that verifies has to know that one. Ctrl-C and SIGTERM end it: what is under way has five seconds, then it goes back to the server, and so does what was not begun.

It needs a token with the scopes listen and read, or one that may write.`;
  static override examples = examples("evreg listen", {
    "Forward events to a program on this machine":
      "evreg listen --action order.created --forward-to localhost:3000/hooks",
    "Run a command for each": "evreg listen --action order.created --exec 'jq .id'",
  });
  static override flags = {
    action: Flags.string({
      summary:
        "Only events of this action, or of all beneath it as order.* (default: those of --subscription where it is there, else all). May be repeated.",
      helpValue: "NAME",
      multiple: true,
      multipleNonGreedy: true,
    }),
    "forward-to": textFlag(
      "Post each to this address: 3000 or 3000/hooks for a port of this machine, localhost:3000/hooks, or a URL.",
      "URL",
      {
        exclusive: ["exec", "print"],
      },
    ),
    exec: textFlag("Run this command of the shell for each, with the payload on stdin.", "COMMAND", {
      exclusive: ["print"],
    }),
    print: Flags.boolean({ summary: "Show each with its payload. The default." }),
    application: textFlag("The subscribing application (default: that of the token, else listen).", "NAME"),
    subscription: textFlag("Name of the subscription (default: listen-USER@HOST).", "NAME"),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Listen);
    const { application, subscription, action: actions } = flags;
    if (flags.exec?.trim() === "") throw usageError("--exec: name the command to run for each event.");
    const { attempt, what } = attemptOf(flags["forward-to"], flags.exec);
    const output = this.outputFor(flags);
    const prints = flags["forward-to"] === undefined && flags.exec === undefined;
    const report = listenReport(output, prints, () => systemClock.now());
    const signal = interruption();
    await this.withTarget(
      flags,
      async (evreg) => {
        const subscriptions = await subscriptionsFor(evreg, { application, subscription, actions });
        await noteOthers(evreg, subscriptions);
        note(`Listening: ${subscriptions.map(nameOf).join(", ")}. ${what}`);
        await listen(evreg, subscriptions, { attempt, report, signal, graceMs: GRACE_MS });
      },
      { serverFor: "listen" },
    );
  }
}

function attemptOf(
  forward: string | undefined,
  exec: string | undefined,
): { readonly attempt: LocalAttempt; readonly what: string } {
  if (forward !== undefined) {
    const url = localUrl(forward);
    return { attempt: forwardTo(url), what: `Forwarding to ${escapeControl(url.href)}.` };
  }
  if (exec !== undefined) return { attempt: execute(exec), what: "Running the command for each." };
  return { attempt: () => Promise.resolve({ isDelivered: true }), what: "Showing each." };
}
