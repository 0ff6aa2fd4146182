import type { SeededRandom } from "./random.ts";

const WORDS =
  "amber anchor apple autumn basil beacon birch bridge canvas cedar cherry cloud copper coral delta ember fern forest garden harbor hazel island ivory juniper lantern lemon linen maple marble meadow mint olive orchard pepper pine quartz river saffron silver spruce sunset timber tulip valley velvet violet walnut willow winter".split(
    " ",
  );

export function word(random: SeededRandom): string {
  return random.pick(WORDS);
}

/** A few words, or as many as the least length asks for. Lengths in characters. */
export function phrase(random: SeededRandom, least: number, most: number): string {
  let text = word(random);
  if (most > 16 && random.chance(0.4)) text += ` ${word(random)}`;
  while (text.length < least) text += ` ${word(random)}`;
  return text.length <= most ? text : text.slice(0, most);
}
