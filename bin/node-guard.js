// Runs on an old Node too: it goes on with the Node that `npm ci` brought, or says in a sentence what is missing.
import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { isatty } from "node:tty";
import { fileURLToPath } from "node:url";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  const checkout = fileURLToPath(new URL("..", import.meta.url));
  const brought = join(checkout, "node_modules", ".bin", "node");
  if (!existsSync(brought) || realpathSync(brought) === realpathSync(process.execPath)) {
    process.stderr.write(
      `evreg needs Node 22.19 or later; this is ${process.version}.\n` +
        (existsSync(`${checkout}package-lock.json`)
          ? `Run \`npm ci\` in ${checkout}: it brings Node 24 along, and evreg runs on that.\n`
          : "Install a later Node, and run evreg with that.\n"),
    );
    process.exit(1);
  }
  await runOn(brought);
}

/** Runs this command line on another Node, in this process's place: it gets its signals, and ends as it does. */
function runOn(node) {
  // Listened for before there is a child: one that comes now would end this process alone.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      // A terminal has sent it to the child as well, and a second one would end a server at once.
      if (signal === "SIGTERM" || ![0, 1, 2].some((descriptor) => isatty(descriptor))) child.kill(signal);
    });
  }
  const child = spawn(node, [...process.execArgv, ...process.argv.slice(1)], { stdio: "inherit" });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
  return new Promise(() => undefined);
}
