// RFC 3492 with the parameters IDNA uses. Labels are 63 characters at the most, so that nothing here is long.

const BASE = 36;
const LEAST = 1;
const MOST = 26;
const FIRST_BIAS = 72;
const FIRST_CHARACTER = 0x80;
const LAST_CHARACTER = 0x10ffff;
const DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789";

/** What a Punycode text, without `xn--`, stands for; `undefined` for one that is none. */
export function fromPunycode(text: string): string | undefined {
  const end = text.lastIndexOf("-");
  const characters = Array.from(text.slice(0, Math.max(end, 0)), (one) => one.codePointAt(0)!);
  let character = FIRST_CHARACTER;
  let at = 0;
  let bias = FIRST_BIAS;
  for (let read = end + 1; read < text.length;) {
    const before = at;
    for (let weight = 1, step = BASE; ; step += BASE) {
      const digit = DIGITS.indexOf(text.charAt(read++).toLowerCase() || "-");
      if (digit < 0) return undefined;
      at += digit * weight;
      const threshold = thresholdAt(step, bias);
      if (digit < threshold) break;
      weight *= BASE - threshold;
    }
    const length = characters.length + 1;
    bias = adapted(at - before, length, before === 0);
    character += Math.floor(at / length);
    at %= length;
    if (character > LAST_CHARACTER || (character >= 0xd800 && character <= 0xdfff)) return undefined;
    characters.splice(at++, 0, character);
  }
  return String.fromCodePoint(...characters);
}

export function toPunycode(text: string): string {
  const characters = Array.from(text, (one) => one.codePointAt(0)!);
  const basic = characters.filter((one) => one < FIRST_CHARACTER);
  let written = String.fromCodePoint(...basic);
  if (basic.length > 0) written += "-";
  let last = FIRST_CHARACTER;
  let delta = 0;
  let bias = FIRST_BIAS;
  let done = basic.length;
  for (const next of [...new Set(characters)].toSorted((a, b) => a - b)) {
    if (next < FIRST_CHARACTER) continue;
    delta += (next - last) * (done + 1);
    for (const one of characters) {
      if (one < next) delta++;
      if (one !== next) continue;
      written += numberOf(delta, bias);
      bias = adapted(delta, done + 1, done === basic.length);
      delta = 0;
      done++;
    }
    delta++;
    last = next + 1;
  }
  return written;
}

function numberOf(delta: number, bias: number): string {
  let written = "";
  let left = delta;
  for (let step = BASE; ; step += BASE) {
    const threshold = thresholdAt(step, bias);
    if (left < threshold) return written + DIGITS.charAt(left);
    written += DIGITS.charAt(threshold + ((left - threshold) % (BASE - threshold)));
    left = Math.floor((left - threshold) / (BASE - threshold));
  }
}

function thresholdAt(step: number, bias: number): number {
  return Math.min(Math.max(step - bias, LEAST), MOST);
}

function adapted(delta: number, count: number, isFirst: boolean): number {
  let left = Math.floor(delta / (isFirst ? 700 : 2));
  left += Math.floor(left / count);
  let bias = 0;
  for (; left > ((BASE - LEAST) * MOST) / 2; bias += BASE) left = Math.floor(left / (BASE - LEAST));
  return bias + Math.floor(((BASE - LEAST + 1) * left) / (left + 38));
}
