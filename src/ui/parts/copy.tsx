import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { shellWord } from "../../domain/formats.ts";
import { apiUrl } from "../api/resource.ts";
import { identity, readSession } from "../api/session.ts";
import { sayError, useAskBeforeLeaving } from "./acting.ts";
import { Icon } from "./icons.tsx";
import { Button } from "./layout.tsx";

const SHOWN_MS = 1_500;

/**
 * A button that copies text.
 * @param props.text the text, or what makes it when it is wanted
 * @param props.what what is copied, for those who hear the page: "the payload"
 * @param props.label words instead of the icon
 */
export function Copy(props: {
  readonly text: string | (() => string | Promise<string>);
  readonly what: string;
  readonly label?: string;
  readonly copied?: () => void;
}) {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await copyText(typeof props.text === "string" ? props.text : await props.text());
      setDone(true);
      props.copied?.();
      setTimeout(() => setDone(false), SHOWN_MS);
    } catch (error) {
      sayError(error);
    }
  };
  const label = done ? "Copied" : `Copy ${props.what}`;
  return (
    <button
      type="button"
      class={props.label === undefined ? "btn bare icon-only" : "btn"}
      aria-label={props.label === undefined ? label : undefined}
      title={label}
      onClick={() => void copy()}
    >
      {props.label === undefined ? <Icon name={done ? "done" : "copy"} /> : done ? "Copied" : props.label}
    </button>
  );
}

/**
 * A secret, the one time that it can be seen. The page is not left unasked before it was copied, or somebody says that it
 * is kept.
 * @param props.otherwise how to get another one, where it is lost
 * @param props.next buttons, once it is kept
 */
export function SecretOnce(props: {
  readonly title: ComponentChildren;
  readonly secret: string;
  readonly what: string;
  readonly otherwise: string;
  readonly next: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const { title, secret, what, otherwise, next, children } = props;
  const [isKept, setKept] = useState(false);
  const keep = (): void => setKept(true);
  useAskBeforeLeaving(
    isKept
      ? undefined
      : {
          title: `Leave without ${what}?`,
          body: `It was not copied, and is never shown again. ${otherwise}`,
          act: "Leave",
          keep: "Stay",
          danger: true,
        },
  );
  return (
    <section class="stack narrow" aria-label={`Copy ${what}`}>
      <h1>{title}</h1>
      <div class="panel pad stack tight soft">
        {children}
        <div class="cmd">
          <code onCopy={keep}>{secret}</code>
          <Copy text={secret} what={what} copied={keep} />
        </div>
      </div>
      <div class="form-acts">{isKept ? next : <Button look="main" run={keep} label="I have kept it" />}</div>
    </section>
  );
}

/** Outside of HTTPS and this machine a browser has no clipboard: there the old way is what there is. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("The browser did not copy it. Select the text and copy it by hand.");
}

/**
 * A command as it works wherever it is pasted: with the address of this server, where that is all it needs. Where a token is
 * needed, the variables of the shell or the server's folder have both.
 */
export function runnable(command: string): string {
  const needsNone = identity.value !== null && readSession() === null && /^evreg (?!.*--help)/.test(command);
  return needsNone ? `${command} --url ${apiUrl("").replace(/\/$/, "")}` : command;
}

/** A command that does the same, to copy; of several, each takes what the one before it prints. */
export function Command({ text }: { readonly text: string | readonly string[] }) {
  const command = [text].flat().map(runnable).join(" | ");
  return (
    <div class="cmd">
      <code>{command}</code>
      <Copy text={command} what="the command" />
    </div>
  );
}

/** A button that copies the command for what is shown. */
export function CopyCommand({ text }: { readonly text: string }) {
  return <Copy text={runnable(text)} what="the command that shows it" label="Copy as command" />;
}

/**
 * A request for a shell, with a body in several lines.
 * @param headers as `Name: value`, each a word of the shell
 */
export function curlOf(method: string, url: string, headers: readonly string[], body?: string): string {
  const parts = [
    method === "GET" ? "curl" : `curl -X ${method}`,
    ...headers.map((header) => `-H ${header}`),
    ...(body === undefined ? [] : [`--data-raw ${shellWord(body)}`]),
    shellWord(url),
  ];
  return parts.join(body === undefined ? " " : " \\\n  ");
}

/** Takes the token from the environment of whoever runs it. */
export const TOKEN_HEADER = `"Authorization: Bearer $EVREG_TOKEN"`;
export const JSON_HEADER = "'Content-Type: application/json'";
