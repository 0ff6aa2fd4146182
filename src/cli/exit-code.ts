/** What a command's process ends with. Failures that are an `EvregError` end with that error's own code instead. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  /** A check that changes nothing found what an update would be refused for. */
  breaking: 5,
  /** A bulk went through, but some of its items were refused. */
  someFailed: 7,
  /** 128 + SIGINT, as shells count it. */
  interrupted: 130,
} as const;
