// What did a test leave on this machine? Mounts and loop devices below a directory; and how to wait for something real.
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export const needsRoot = process.getuid?.() === 0 ? false : 'needs root'

/** A directory for PATH that holds links to every program of this machine but one: so a program is missing wherever the test runs. */
export function pathWithout(program: string, directory: string): string {
  mkdirSync(directory)
  const linked = new Set([program])
  for (const place of (process.env['PATH'] ?? '').split(':')) {
    for (const name of namesIn(place)) {
      if (linked.has(name)) continue
      linked.add(name)
      symlinkSync(join(place, name), join(directory, name))
    }
  }
  return directory
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return [] // PATH may name directories that do not exist
  }
}

/** Mount points below the directory, in the order in which they were mounted. */
export function mountsBelow(directory: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(`${directory}/`))
}

/** `/dev/loop3` … whose file lies below the directory. */
export function loopsBelow(directory: string): string[] {
  return readdirSync('/sys/block')
    .filter((name) => name.startsWith('loop') && backingFile(name)?.startsWith(`${directory}/`))
    .map((name) => `/dev/${name}`)
}

function backingFile(name: string): string | undefined {
  try {
    return readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').trim()
  } catch {
    return undefined // it backs nothing, or not any more
  }
}

/** Asks every few milliseconds until the answer is neither undefined nor false. Errors count as "not yet". */
export async function until<T>(
  what: string | (() => string),
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 20_000,
): Promise<T> {
  let cause: unknown
  for (const end = Date.now() + timeoutMs; Date.now() < end; await sleep(10)) {
    try {
      const answer = await ask()
      if (answer !== undefined && answer !== false) return answer
    } catch (error) {
      cause = error
    }
  }
  throw new Error(`not within ${timeoutMs / 1000} s: ${typeof what === 'string' ? what : what()}`, { cause })
}
