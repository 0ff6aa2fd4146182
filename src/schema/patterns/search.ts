import { spend } from "../limits.ts";
import {
  type Automaton,
  type CharacterKind,
  END_TEXT,
  kindsOf,
  startOf,
  type AutomatonState,
  UNANCHORED,
} from "./automaton.ts";
import { expressionOf } from "./compile.ts";

export interface TextWanted {
  readonly matching: readonly string[];
  readonly notMatching: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** A shortest text that is wanted, `none` when there is none, or `unknown` when looking for it would take too long. */
export type TextFound = { readonly text: string } | "none" | "unknown";

const MAX_STATES = 4_000;
const MAX_KINDS = 160;
/** Length is part of the state, so a great one makes too many. */
const MAX_COUNTED_LENGTH = 300;
/** A move costs so many steps beside one for each automaton and each place in its pattern that it comes from. */
const STEPS_PER_MOVE = 4;

interface SearchStep {
  readonly states: readonly AutomatonState[];
  readonly length: number;
  readonly before: SearchStep | undefined;
  readonly letter: Letter;
}

/** The most readable characters of a kind, which all do the same. */
type Letter = readonly [number, ...number[]];

/** The letters of a text, or as `TextFound`. */
type Path = readonly Letter[] | "none" | "unknown";

/** Searches for texts, for one comparison or one schema. It caches them, and the patterns, which may take 20 ms to compile. */
export class TextWitness {
  readonly #automata = new Map<string, Automaton>();
  readonly #found = new Map<string, Path>();

  /** @param variant counts texts of the same kinds of letters, as far as there are others */
  find({ matching, notMatching, minLength = 0, maxLength = Infinity }: TextWanted, variant = 0): TextFound {
    spend(1);
    const key = JSON.stringify([matching, notMatching, minLength, String(maxLength)]);
    let path = this.#found.get(key);
    if (path === undefined) {
      path = this.#looking({ matching, notMatching, minLength, maxLength });
      this.#found.set(key, path);
    }
    if (typeof path === "string") return path;
    spend(path.length >> 3);
    let rest = variant;
    const characters = path.map((letter) => {
      const character = letter[rest % letter.length]!;
      rest = Math.floor(rest / letter.length);
      return character;
    });
    return { text: String.fromCodePoint(...characters) };
  }

  #looking(wanted: Required<TextWanted>): Path {
    const { matching, notMatching, minLength, maxLength } = wanted;
    if (minLength > maxLength) return "none";
    if (minLength > MAX_COUNTED_LENGTH) return "unknown";
    const automata = [...matching, ...notMatching].map((pattern) => this.#automatonOf(pattern));
    const letters = automata.some(({ failed }) => failed) ? undefined : lettersOf(automata);
    if (letters === undefined) return "unknown";
    // States that another search has built count against the limit.
    for (const automaton of automata) automaton.clearCache();
    return walk(automata, letters, wanted);
  }

  #automatonOf(pattern: string): Automaton {
    let automaton = this.#automata.get(pattern);
    if (automaton === undefined) {
      automaton = expressionOf(pattern).re2Input.dfa;
      this.#automata.set(pattern, automaton);
    }
    return automaton;
  }
}

/** Walks the automata of all patterns side by side, breadth first. `none` is a proof, as every state was visited then. */
function walk(
  automata: readonly Automaton[],
  letters: readonly Letter[],
  { matching, minLength, maxLength }: Required<TextWanted>,
): Path {
  const counted = Math.min(maxLength, MAX_COUNTED_LENGTH);
  const wanted = (states: readonly boolean[]): boolean =>
    states.every((isMatch, index) => isMatch === index < matching.length);
  const first = automata.map(startOf);
  if (first.includes(null)) return "unknown";
  const ids = new Map<AutomatonState, number>();
  // Beyond both lengths it makes no difference how long a text is.
  const floor = maxLength === Infinity ? minLength : counted;
  const keyOf = ({ states, length }: SearchStep): string =>
    `${states
      .map((state) => {
        if (state.isMatch) return "+";
        if (!ids.has(state)) ids.set(state, ids.size);
        return ids.get(state);
      })
      .join()};${Math.min(length, floor)}`;
  const start: SearchStep = {
    states: first as AutomatonState[],
    length: 0,
    before: undefined,
    letter: [END_TEXT],
  };
  const waiting: SearchStep[] = [start];
  const seen = new Set([keyOf(start)]);
  for (const node of waiting) {
    if (node.length >= minLength && wanted(ended(automata, node.states))) return pathTo(node);
    if (node.length >= counted) {
      if (counted < maxLength) return "unknown";
      continue;
    }
    for (const letter of letters) {
      const move = node.states.reduce((sum, { nfaStates }) => sum + 1 + nfaStates.length, 0);
      spend(STEPS_PER_MOVE + move);
      const states = automata.map((automaton, index) => moved(automaton, node.states[index]!, letter[0]));
      if (states.includes(null)) return "unknown";
      const next = { states: states as AutomatonState[], length: node.length + 1, before: node, letter };
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
function moved(automaton: Automaton, state: AutomatonState, character: number): AutomatonState | null {
  if (state.isMatch) return state;
  return automaton.step(state, automaton.runeClass(character), character, UNANCHORED);
}

function ended(automata: readonly Automaton[], states: readonly AutomatonState[]): boolean[] {
  return automata.map((automaton, index) => {
    const state = states[index]!;
    if (state.isMatch) return true;
    return automaton.step(state, automaton.numClasses, END_TEXT, UNANCHORED)?.isMatch === true;
  });
}

/** Characters at which readability changes, and beside which a word may end; and the surrogates. */
const EDGES = [
  0, 0x0a, 0x0b, 0x20, 0x21, 0x30, 0x3a, 0x41, 0x5b, 0x5f, 0x60, 0x61, 0x7b, 0x7f, 0xa1, 0xd800, 0xe000,
];
/** Ranges of a kind, and characters of each, that are looked at. */
const MAX_RANGES = 16;
const MAX_CHARACTERS = 26;

/** One letter of each kind of characters, the most readable ones first; `undefined` where there are too many kinds. */
function lettersOf(automata: readonly Automaton[]): readonly Letter[] | undefined {
  const kinds = kindsOf(automata, EDGES, spend);
  if (kinds.length > MAX_KINDS) return undefined;
  return kinds
    .flatMap((kind) => letterOf(kind) ?? [])
    .toSorted((one, other) => rank(one[0]) - rank(other[0]));
}

/** `undefined` for surrogates, which payloads have in pairs only. */
function letterOf(kind: CharacterKind): [Letter] | undefined {
  const characters = kind
    .filter(([first]) => first < 0xd800 || first >= 0xe000)
    .slice(0, MAX_RANGES)
    .flatMap(([first, end]) =>
      Array.from({ length: Math.min(end - first, MAX_CHARACTERS) }, (_, index) => first + index),
    );
  const best = Math.min(...characters.map(rank));
  const [first, ...others] = characters.filter((character) => rank(character) === best);
  return first === undefined ? undefined : [[first, ...(best < UNUSUAL ? others : [])]];
}

const UNUSUAL = 4;

/** Letters first, then digits, then other printable characters: for a readable text. */
function rank(character: number): number {
  if (character >= 0x61 && character <= 0x7a) return 0;
  if (character >= 0x41 && character <= 0x5a) return 1;
  if (character >= 0x30 && character <= 0x39) return 2;
  if (character > 0x20 && character < 0x7f) return 3;
  return character === 0x20 || character >= 0xa1 ? UNUSUAL : UNUSUAL + 1;
}

function pathTo(node: SearchStep): readonly Letter[] {
  const path: Letter[] = [];
  for (let at: SearchStep | undefined = node; at?.before !== undefined; at = at.before) path.push(at.letter);
  return path.toReversed();
}
