import { useMemo, useState } from "preact/hooks";
import { Copy } from "./copy.tsx";
import { exactLines, indentedLines, type Piece } from "./json-tokens.ts";
import { Button, CodeBox, Segments } from "./layout.tsx";
import { sizeText } from "./values.tsx";

/** Beyond this a payload is shown only when somebody asks for it. */
const UNASKED_CHARACTERS = 64 * 1_024;
/** Beyond this it is plain text: each coloured piece is an element. */
const COLOURED_CHARACTERS = 128 * 1_024;
export function Lines(props: { readonly lines: readonly (readonly Piece[])[]; readonly tall?: boolean }) {
  const { lines, tall } = props;
  return (
    <ol class={tall === false ? "code" : "code tall"} tabIndex={0} aria-label="JSON">
      {lines.map((line, index) => (
        <li key={index}>
          <Pieces pieces={line} />
        </li>
      ))}
    </ol>
  );
}

/** A line of JSON in its colours. */
export function Pieces({ pieces }: { readonly pieces: readonly Piece[] }) {
  return (
    <span class="text">
      {pieces.map((piece, at) => (
        <span key={at} class={piece.kind}>
          {piece.text}
        </span>
      ))}
    </span>
  );
}

/** JSON text as it was stored, or with other white space; never parsed, so that no number is rounded. */
export function JsonView(props: {
  readonly title: string;
  /** "the payload" */
  readonly what: string;
  readonly text: string;
  /** Indented first: for what nobody published byte for byte, such as a schema. */
  readonly indented?: boolean;
  readonly note?: string;
}) {
  const { title, what, text } = props;
  const isOneLine = !text.includes("\n");
  const [indented, setIndented] = useState(props.indented ?? isOneLine);
  const [asked, setAsked] = useState(false);
  const shown = asked || text.length <= UNASKED_CHARACTERS;
  const lines = useMemo(
    () =>
      !shown || text.length > COLOURED_CHARACTERS
        ? undefined
        : indented
          ? indentedLines(text)
          : exactLines(text),
    [text, indented, shown],
  );
  const bytes = useMemo(() => new Blob([text]).size, [text]);
  return (
    <CodeBox
      title={title}
      note={props.note ?? sizeText(bytes)}
      aside={
        <>
          {lines !== undefined && (
            <Segments
              label="White space"
              choices={{ exact: "Exact", indented: "Indented" }}
              picked={indented ? "indented" : "exact"}
              pick={(space) => setIndented(space === "indented")}
            />
          )}
          <Copy text={text} what={what} />
        </>
      }
    >
      {!shown && (
        <div class="empty">
          <p>It is large: {sizeText(bytes)}. Showing it may take a moment.</p>
          <Button run={() => setAsked(true)} label="Show it" />
        </div>
      )}
      {lines !== undefined && <Lines lines={lines} />}
      {shown && lines === undefined && (
        <pre class="code tall plain" tabIndex={0}>
          {text}
        </pre>
      )}
    </CodeBox>
  );
}
