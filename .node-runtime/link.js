// Runs on any Node. Npm 10 installs the Node of this package without linking it into node_modules/.bin, where `npm run`
// and `npx` look first; newer npm links it by itself.
import { existsSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const modules = fileURLToPath(new URL("../node_modules", import.meta.url));
const link = join(modules, ".bin", "node");
const brought = readdirSync(modules).find(
  (name) => name.startsWith("node-") && existsSync(join(modules, name, "bin", "node")),
);
if (brought !== undefined && process.platform !== "win32" && !existsSync(link)) {
  symlinkSync(join("..", brought, "bin", "node"), link);
}
