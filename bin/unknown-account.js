import { homedir, userInfo } from "node:os";

/**
 * For an account that the system has no entry for (a container's `--user 54321`) Node's look-ups throw, and oclif asks
 * for the home as it is loaded and for the shell at each start; with these set it does not look.
 */
export function setMissingAccount() {
  try {
    homedir();
  } catch {
    // Debian's name for a home that is not there: nothing is found in it, and nothing can be put into it.
    process.env.HOME = "/nonexistent";
  }
  try {
    if (process.env.SHELL === undefined) userInfo();
  } catch {
    process.env.SHELL = "/bin/sh";
  }
}

// As it is loaded, so that it comes before the modules that are imported after it.
setMissingAccount();
