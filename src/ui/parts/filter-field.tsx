import { useRef, useState } from "preact/hooks";
import { useKeys } from "./keys.ts";
import { goTo, linkTo, type Route } from "./route.ts";
import { EXACT, Wrong } from "./form.tsx";

export interface FilterName {
  readonly name: string;
  /** The placeholder of the field while it is typed: `order.*`. */
  readonly example: string;
  /** What it finds, for one whose name does not say it. Its example then stands in the empty field. */
  readonly hint?: string;
  /** What it is taken for without its name. */
  readonly bare?: RegExp;
  /** What can be given; anything where it is left out. */
  readonly values?: readonly string[];
  /** What is offered, where anything can be given. */
  readonly offers?: readonly string[];
  /** What a tag says for a value, where that is a number that people have a name for. */
  readonly shown?: (value: string) => string;
}

/**
 * A list's filters, as they stand in the address: a tag for each. Typed as `action order.*` or `action:order.*`.
 * @param props.path of the list's screen
 */
export function FilterField(props: {
  readonly label: string;
  readonly path: readonly string[];
  readonly route: Route;
  readonly names: readonly FilterName[];
  /** What a word alone is: a list's usual filter. */
  readonly plain: string;
}) {
  const { names, route, path } = props;
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState("");
  useKeys([{ key: "/", what: "Filter", run: () => input.current?.focus() }]);

  const filled = names.filter(({ name }) => route.query[name] !== undefined);
  const change = (name: string, value: string | undefined): void =>
    goTo(linkTo(path, { ...route.query, after: undefined, [name]: value }));
  const add = (): void => {
    const typed = text.trim();
    if (typed === "") return;
    const [, first = "", rest = ""] = /^([a-z_]+)[\s:=]+(.+)$/s.exec(typed) ?? [];
    const known = names.find(({ name }) => name === first);
    const value = known === undefined ? typed : rest.trim();
    const name = (known ?? names.find(({ bare }) => bare?.test(typed)))?.name ?? props.plain;
    if (known?.values !== undefined && !known.values.includes(value)) {
      setWrong(`${name} is one of ${known.values.join(", ")}.`);
      return;
    }
    setText("");
    setWrong("");
    change(name, value);
  };
  const example = names.find(({ name }) => text.startsWith(`${name} `) || text.startsWith(`${name}:`));
  return (
    <div>
      <div class="field">
        {filled.map(({ name, shown }) => (
          <span class="tag" key={name}>
            <b>{name}</b> <span class="value">{shown?.(route.query[name] ?? "") ?? route.query[name]}</span>
            <button aria-label={`Remove the filter ${name}`} onClick={() => change(name, undefined)}>
              ×
            </button>
          </span>
        ))}
        <input
          ref={input}
          value={text}
          aria-label={props.label}
          aria-invalid={wrong !== ""}
          list="filters"
          {...EXACT}
          placeholder={`${names.map(({ name, hint, example: one }) => (hint === undefined ? name : `${name} ${one}`)).join(", ")}…`}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") add();
            else if (event.key === "Escape") event.currentTarget.blur();
            else if (event.key === "Backspace" && text === "") change(filled.at(-1)?.name ?? "", undefined);
          }}
        />
        <datalist id="filters">
          {(example?.values ?? example?.offers ?? []).map((value) => (
            <option key={value} value={`${example?.name} ${value}`} />
          ))}
          {example === undefined &&
            names.map(({ name, example: one, hint }) => (
              <option key={name} value={`${name} ${one}`} label={hint} />
            ))}
        </datalist>
        <kbd>/</kbd>
      </div>
      <Wrong text={wrong} />
    </div>
  );
}
