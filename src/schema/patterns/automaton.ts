/** A state of re2js's lazy automaton. */
export interface AutomatonState {
  readonly isMatch: boolean;
  readonly nfaStates: readonly number[];
}

interface Instruction {
  readonly runes: Int32Array;
  matchRune(character: number): boolean;
}

/** What re2js has of a pattern's automaton. */
export interface Automaton {
  readonly prog: { numInst(): number; getInst(at: number): Instruction };
  readonly numClasses: number;
  readonly classBounds: Int32Array;
  readonly failed: boolean;
  runeClass(character: number): number;
  step(
    state: AutomatonState,
    characterClass: number,
    character: number,
    anchor: number,
  ): AutomatonState | null;
  start(input: { context(at: number): number; step(at: number): number }, at: number): AutomatonState | null;
  /** Forgets the states there are. */
  clearCache(): void;
}

export const UNANCHORED = 0;
const BEGIN_TEXT_AND_LINE = 0b101;
export const END_TEXT = -1;
const LAST_CHARACTER = 0x10ffff;

/** The state before the first character of a text. */
export function startOf(automaton: Automaton): AutomatonState | null {
  return automaton.start({ context: () => BEGIN_TEXT_AND_LINE, step: () => END_TEXT }, 0);
}

/** The first character of a range, and the one after its last. */
type CharacterRange = readonly [first: number, end: number];

/** Ranges of characters that no pattern tells apart. */
export type CharacterKind = readonly [CharacterRange, ...CharacterRange[]];

/**
 * The kinds of characters that some patterns distinguish. Many ranges are of one kind: `\p{L}` has more than a thousand.
 * @param edges other characters at which a kind may begin
 * @param spend counts the work; it may throw
 */
export function kindsOf(
  automata: readonly Automaton[],
  edges: Iterable<number>,
  spend: (steps: number) => void,
): readonly CharacterKind[] {
  const tests = new Map<Int32Array, Instruction>();
  for (const { prog } of automata) {
    for (let at = 0; at < prog.numInst(); at++) {
      const instruction = prog.getInst(at);
      if (instruction.runes.length > 0) tests.set(instruction.runes, instruction);
    }
  }
  const firsts = [...new Set([...edges, ...automata.flatMap(({ classBounds }) => [...classBounds])])]
    .filter((first) => first <= LAST_CHARACTER)
    .toSorted((one, other) => one - other);
  const kinds = new Map<string, [CharacterRange, ...CharacterRange[]]>();
  for (const [index, first] of firsts.entries()) {
    spend(tests.size);
    // A line feed ends a line, and word characters have boundaries.
    let kind = `${first === 0x0a} ${/\w/.test(String.fromCodePoint(first))} `;
    for (const test of tests.values()) kind += test.matchRune(first) ? "1" : "0";
    const range: CharacterRange = [first, firsts[index + 1] ?? LAST_CHARACTER + 1];
    const ranges = kinds.get(kind);
    if (ranges === undefined) kinds.set(kind, [range]);
    else ranges.push(range);
  }
  return [...kinds.values()];
}
