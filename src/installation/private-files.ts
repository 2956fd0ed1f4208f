// How is a file written that only we may read, and how is it read if it is there?
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { requireTrustedPath } from './trusted.ts'

/** Mode 0600 from the first byte on: the file never exists with wider rights. */
export function writePrivate(path: string, text: string): string {
  rmSync(path, { force: true })
  writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
  return text
}

/** Whole or not at all, also over a loss of power: a reader finds the old text or the new one. */
export function replaceFile(path: string, text: string): void {
  const partial = `${path}.partial`
  rmSync(partial, { force: true })
  const file = openSync(partial, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameForGood(partial, path)
}

/** The file has its new name, also after a loss of power. */
export function renameForGood(from: string, to: string): void {
  renameSync(from, to)
  const directory = openSync(dirname(to), 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** Throws a UsageError where somebody else could have written the file. */
export function readIfThere(path: string): string | undefined {
  requireTrustedPath(path, `the file ${path}`)
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
