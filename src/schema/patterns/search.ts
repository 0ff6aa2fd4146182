import { spend } from "../limits.ts";
import { type Automaton, END_TEXT, expressionOf, startOf, type State, UNANCHORED } from "./compile.ts";

export interface TextWanted {
  readonly matching: readonly string[];
  readonly notMatching: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** A shortest text that is wanted, `none` when there is none, or `unknown` when looking for it would take too long. */
export type TextFound = { readonly text: string } | "none" | "unknown";

const MAX_STATES = 4_000;
const MAX_CLASSES = 160;
/** Length is part of the state, so a great one makes too many. */
const MAX_COUNTED_LENGTH = 300;
/** Beside one for each automaton and each place in its pattern that a move comes from. */
const STEPS_PER_MOVE = 4;
interface Step {
  readonly states: readonly State[];
  readonly length: number;
  readonly before: Step | undefined;
  readonly character: number;
}

/** Searches for texts, for one comparison. It caches the texts, and the patterns, which may take 20 ms to compile. */
export class TextWitness {
  readonly #automata = new Map<string, Automaton>();
  readonly #found = new Map<string, TextFound>();

  find({ matching, notMatching, minLength = 0, maxLength = Infinity }: TextWanted): TextFound {
    spend(1);
    const key = JSON.stringify([matching, notMatching, minLength, String(maxLength)]);
    let found = this.#found.get(key);
    if (found === undefined) {
      found = this.#looking({ matching, notMatching, minLength, maxLength });
      this.#found.set(key, found);
    }
    return found;
  }

  #looking(wanted: Required<TextWanted>): TextFound {
    const { minLength, maxLength } = wanted;
    if (minLength > maxLength) return "none";
    if (minLength > MAX_COUNTED_LENGTH) return "unknown";
    const automata: Automaton[] = [];
    for (const pattern of [...wanted.matching, ...wanted.notMatching]) {
      const automaton = this.#automatonOf(pattern);
      if (automaton.failed || automaton.classBounds.length > MAX_CLASSES) return "unknown";
      automata.push(automaton);
    }
    return walk(automata, wanted);
  }

  #automatonOf(pattern: string): Automaton {
    let automaton = this.#automata.get(pattern);
    if (automaton === undefined) {
      automaton = expressionOf(pattern).re2Input.dfa;
      this.#automata.set(pattern, automaton);
    }
    // States that another search has built count against the limit.
    automaton.clearCache();
    return automaton;
  }
}

/** Walks the automata of all patterns side by side, breadth first. `none` is a proof, as every state was visited then. */
function walk(
  automata: readonly Automaton[],
  { matching, minLength, maxLength }: Required<TextWanted>,
): TextFound {
  const counted = Math.min(maxLength, MAX_COUNTED_LENGTH);
  const alphabet = representatives(automata);
  if (alphabet === undefined) return "unknown";
  const wanted = (states: readonly boolean[]): boolean =>
    states.every((isMatch, index) => isMatch === index < matching.length);
  const first = automata.map(startOf);
  if (first.includes(null)) return "unknown";
  const ids = new Map<State, number>();
  // Beyond both lengths it makes no difference how long a text is.
  const floor = maxLength === Infinity ? minLength : counted;
  const keyOf = ({ states, length }: Step): string =>
    `${states
      .map((state) => {
        if (state.isMatch) return "+";
        if (!ids.has(state)) ids.set(state, ids.size);
        return ids.get(state);
      })
      .join()};${Math.min(length, floor)}`;
  const start: Step = { states: first as State[], length: 0, before: undefined, character: END_TEXT };
  const waiting: Step[] = [start];
  const seen = new Set([keyOf(start)]);
  for (const node of waiting) {
    if (node.length >= minLength && wanted(ended(automata, node.states))) return { text: textOf(node) };
    if (node.length >= counted) {
      if (counted < maxLength) return "unknown";
      continue;
    }
    for (const character of alphabet) {
      const move = node.states.reduce((sum, { nfaStates }) => sum + 1 + nfaStates.length, 0);
      spend(STEPS_PER_MOVE + move);
      const states = automata.map((automaton, index) => moved(automaton, node.states[index]!, character));
      if (states.includes(null)) return "unknown";
      const next = { states: states as State[], length: node.length + 1, before: node, character };
      const key = keyOf(next);
      if (seen.has(key)) continue;
      seen.add(key);
      if (seen.size > MAX_STATES) return "unknown";
      waiting.push(next);
    }
  }
  return "none";
}

/** A match is found as soon as its text has been read, whatever follows. */
function moved(automaton: Automaton, state: State, character: number): State | null {
  if (state.isMatch) return state;
  return automaton.step(state, automaton.runeClass(character), character, UNANCHORED);
}

function ended(automata: readonly Automaton[], states: readonly State[]): boolean[] {
  return automata.map((automaton, index) => {
    const state = states[index]!;
    if (state.isMatch) return true;
    return automaton.step(state, automaton.numClasses, END_TEXT, UNANCHORED)?.isMatch === true;
  });
}

/** One character for each range that no pattern distinguishes, a printable one if there is one. */
function representatives(automata: readonly Automaton[]): number[] | undefined {
  // Word characters matter to \b, and payloads have no lone surrogates.
  const always = [
    0, 0x0a, 0x0b, 0x20, 0x30, 0x3a, 0x41, 0x5b, 0x5f, 0x60, 0x61, 0x7b, 0x7f, 0xd800, 0xe000, 0x110000,
  ];
  const bounds = new Set([...always, ...automata.flatMap(({ classBounds }) => [...classBounds])]);
  if (bounds.size > MAX_CLASSES) return undefined;
  const sorted = [...bounds].toSorted((a, b) => a - b);
  const characters = sorted
    .slice(0, -1)
    .filter((from) => from < 0x110000 && !(from >= 0xd800 && from < 0xe000))
    .map((from) => (from === 0x20 && sorted[sorted.indexOf(from) + 1]! > 0x2d ? 0x2d : from));
  return characters.toSorted((a, b) => rank(a) - rank(b));
}

/** Letters first, then digits, then other printable characters: for a readable text. */
function rank(character: number): number {
  if (character >= 0x61 && character <= 0x7a) return 0;
  if (character >= 0x41 && character <= 0x5a) return 1;
  if (character >= 0x30 && character <= 0x39) return 2;
  return character >= 0x20 && character < 0x7f ? 3 : 4;
}

function textOf(node: Step): string {
  let text = "";
  for (let at: Step | undefined = node; at?.before !== undefined; at = at.before) {
    text = String.fromCodePoint(at.character) + text;
  }
  return text;
}
