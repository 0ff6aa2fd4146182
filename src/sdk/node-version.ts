// Imported before all else, as what asks a server does not even load on an older Node.

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  const error = new Error(`evreg/client needs Node 22.19 or later; this is Node ${process.versions.node}.`);
  // Where it was thrown says nothing to whoever reads it.
  error.stack = `Error: ${error.message}`;
  throw error;
}
