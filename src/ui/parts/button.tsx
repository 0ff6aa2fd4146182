/**
 * What is pressed, to do something or to go somewhere; without either it sends the form that it stands in.
 * @param props.look how it looks besides: `main`, `bare`, `danger`, `push`
 */
export function Button(props: {
  readonly label: string;
  readonly look?: string;
  readonly to?: string;
  readonly run?: () => void | Promise<void>;
  readonly disabled?: boolean;
}) {
  const { label, look, to, run, disabled } = props;
  const kind = look === undefined ? "btn" : `btn ${look}`;
  if (to !== undefined) {
    return (
      <a class={kind} href={to} onClick={() => void run?.()}>
        {label}
      </a>
    );
  }
  return (
    <button
      type={run === undefined ? "submit" : "button"}
      class={kind}
      disabled={disabled}
      onClick={() => void run?.()}
    >
      {label}
    </button>
  );
}

/**
 * A few of which one is picked.
 * @param props.choices what each says
 */
export function Segments<Choice extends string>(props: {
  readonly label: string;
  readonly look?: string;
  readonly choices: Readonly<Record<Choice, string>>;
  readonly picked: Choice;
  readonly pick: (choice: Choice) => void;
}) {
  const { label, look, choices, picked, pick } = props;
  return (
    <span class={look === undefined ? "seg" : `seg ${look}`} role="group" aria-label={label}>
      {(Object.keys(choices) as Choice[]).map((choice) => (
        <button key={choice} type="button" aria-pressed={choice === picked} onClick={() => pick(choice)}>
          {choices[choice]}
        </button>
      ))}
    </span>
  );
}
