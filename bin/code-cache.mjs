// Where may compiled code be kept between starts? Node runs what it finds in its compile cache without checking it, so
// whoever can write there runs code as this user. The cache is used only in a directory that nobody else can change:
//
// 1. It is a directory, not a link; it belongs to us; its mode is 0700.
// 2. Every directory above it belongs to us or to root, and nobody else can rename what lies in it: it is not writable
//    by group or others, or it is sticky.
//
// Otherwise there is no cache: the program starts more slowly and works the same.
import { lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { dirname, isAbsolute, join } from 'node:path'

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
    return isClosed(path) && areSafe(dirname(path)) ? path : undefined
  } catch {
    // A full or read-only disk, somebody else's directory, a file in the way.
    return undefined
  }
}

function isClosed(path) {
  const found = lstatSync(path)
  return found.isDirectory() && found.uid === process.getuid() && (found.mode & 0o077) === 0
}

function areSafe(path) {
  const { uid, mode } = lstatSync(path)
  const isOurs = uid === process.getuid() || uid === 0
  const isFixed = (mode & 0o022) === 0 || (mode & 0o1000) !== 0
  return isOurs && isFixed && (path === '/' || areSafe(dirname(path)))
}
