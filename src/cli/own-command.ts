// What does a person type to call this program again? `hawser` where it is installed, the path of the launcher in a clone.
import { realpathSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const launcher = fileURLToPath(new URL('../../bin/hawser', import.meta.url))

export function ownCommand(searchPath: string, workingDirectory: string, own: string = launcher): string {
  const installed = searchPath.split(delimiter).some((directory) => isSame(join(directory, 'hawser'), own))
  if (installed) return 'hawser'
  const short = relative(workingDirectory, own)
  return short.startsWith('..') ? own : `./${short}`
}

function isSame(path: string, own: string): boolean {
  try {
    return realpathSync(path) === realpathSync(own)
  } catch {
    return false // nothing there
  }
}
