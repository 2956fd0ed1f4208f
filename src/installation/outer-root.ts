// May a node or a server use this directory? Not inside the root of a node: that node cleans up there, for to it everything inside is
// its own. And the root of a node is not itself the data directory of a server.
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from './config.ts'

export const nodeRecordName = 'node-identity.json'
export const directoryRecordName = 'identity.json'

/** Throws a UsageError for a directory inside a node's root, before anything is made there. */
export function requireOutsideRoots(what: string, directory: string, elsewhere: string): void {
  const root = outerRoot(directory)
  if (root !== undefined)
    throw new UsageError(`${what} lies inside ${root}, the root of a node, which cleans up there`, elsewhere)
}

/** Throws a UsageError for a node's root that is a data directory: the server of that directory could not start again. */
export function requireNoDataDirectory(node: string, root: string, elsewhere: string): void {
  if (existsSync(join(root, directoryRecordName)))
    throw new UsageError(`the root of node ${node}, ${root}, is the data directory of a server`, elsewhere)
}

/** The root of a node that the directory lies in. The directory itself does not count; it need not exist. */
function outerRoot(directory: string): string | undefined {
  let path = resolve(directory)
  if (existsSync(path)) path = realpathSync(path)
  while (path !== dirname(path)) {
    path = dirname(path)
    if (!existsSync(path)) continue
    path = realpathSync(path)
    if (existsSync(join(path, nodeRecordName))) return path
  }
  return undefined
}
