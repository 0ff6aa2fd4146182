import { COMMANDS } from "./index.ts";

const loaded = Object.entries(COMMANDS).map(async ([id, load]) => [id, await load()] as const);

/** All commands, loaded: oclif makes its manifest of them. */
export default Object.fromEntries(await Promise.all(loaded));
