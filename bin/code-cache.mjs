// Where may compiled code be kept between starts? Node runs what it finds in its compile cache without checking it, so
// whoever can write there runs code as this user. The cache is used only in a directory that nobody else can change:
//
// 1. It is a directory, not a link; it belongs to us; its mode is 0700.
// 2. Nobody else can change a directory above it: src/host/trusted-path.ts.
//
// Otherwise there is no cache: the program starts more slowly and works the same.
import { existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { isAbsolute, join } from 'node:path'

// A clone runs its sources; an installed package holds JavaScript only.
const sources = new URL('../src/host/linux/trusted-path.ts', import.meta.url)
const built = new URL('../dist/host/linux/trusted-path.js', import.meta.url)
const { distrustOf } = await import(existsSync(sources) ? sources : built)

const directory = privateDirectory(parentFrom(process.env))
delete process.env.HAWSER_CODE_CACHE
if (directory !== undefined) {
  enableCompileCache(directory)
  // For the processes that this one starts.
  process.env.NODE_COMPILE_CACHE = directory
}

/** NODE_COMPILE_CACHE as bin/hawser found it, or the user's own cache directory; without a home there is none. */
function parentFrom({ HAWSER_CODE_CACHE: chosen, XDG_CACHE_HOME: caches, HOME: home }) {
  if (chosen) return chosen
  if (caches) return join(caches, 'hawser')
  return home ? join(home, '.cache', 'hawser') : undefined
}

function privateDirectory(parent) {
  if (parent === undefined || !isAbsolute(parent)) return undefined
  try {
    mkdirSync(parent, { recursive: true, mode: 0o700 })
    const path = join(realpathSync(parent), 'code')
    mkdirSync(path, { recursive: true, mode: 0o700 })
    return isClosed(path) && !distrustOf(path) ? path : undefined
  } catch {
    // A full or read-only disk, somebody else's directory, a file in the way.
    return undefined
  }
}

function isClosed(path) {
  const found = lstatSync(path)
  return found.isDirectory() && found.uid === process.getuid() && (found.mode & 0o077) === 0
}
