// Does a directory lie inside the root of a node? That node cleans up there: to it, everything inside is its own.
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from './config.ts'

export const nodeRecordName = 'node-identity.json'

/** Throws a UsageError for a directory inside a node's root, before anything is made there. */
export function requireOutsideRoots(what: string, directory: string, elsewhere: string): void {
  const root = outerRoot(directory)
  if (root !== undefined)
    throw new UsageError(`${what} lies inside ${root}, the root of a node, which cleans up there`, elsewhere)
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
