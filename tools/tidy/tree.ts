// Which files does tidy read, and what kind of file is each?
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** Path relative to the repository → its text. */
export type Files = ReadonlyMap<string, string>

export function readFiles(...patterns: string[]): Files {
  const paths = globSync(patterns, { cwd: root }).filter((path) => !isForeign(path))
  return new Map(paths.toSorted().map((path) => [path, readFileSync(join(root, path), 'utf8')]))
}

/** Recorded suites and load generators were made elsewhere; we do not edit them. */
const isForeign = (path: string) => /^test\/recorded\/[^/]+\/suite\/|^tools\/bench\/load\/|\/node_modules\//.test(path)

export const isTest = (path: string) => path.endsWith('.test.ts')

export const isGenerated = (path: string, text: string) =>
  /(_pb|generated)\.ts$|\/generated\//.test(path) || /^\/\/ @?[gG]enerated/m.test(text.slice(0, 400))

export const isComment = (line: string) => /^\s*(\/\/|\*|\/\*)/.test(line)
