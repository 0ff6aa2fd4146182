// Runs on any Node, so that an old one gets a sentence instead of a stack trace.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `evreg needs Node 22.19 or later; this is ${process.version}.\n` +
      "In a checkout, `npm ci` brings Node 24 along: use `npm start`, `npm test` or `npx evreg`, which run on it.\n",
  );
  process.exit(1);
}
