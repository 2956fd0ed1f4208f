// How is a failed system call told? `mkdir /a/b: not a directory`: the call, the path, the reason in words.

import { constants } from 'node:os'
import { getSystemErrorMessage } from 'node:util'

/** Where libuv's words are not those of every other program. */
const commonWords: Readonly<Record<string, string>> = {
  EBUSY: 'device or resource busy',
  EEXIST: 'file exists',
  EIO: 'input/output error',
  ELOOP: 'too many levels of symbolic links',
  EXDEV: 'invalid cross-device link',
}

/** Names of calls that only libuv knows. */
const commonCalls: Readonly<Record<string, string>> = { realpath: 'lstat', scandir: 'open' }

export function callFailure(call: string, path: string, code: string): string {
  return `${commonCalls[call] ?? call} ${path}: ${reasonOf(code)}`
}

function reasonOf(code: string): string {
  const number = (constants.errno as Readonly<Record<string, number>>)[code]
  return commonWords[code] ?? (number === undefined ? code : getSystemErrorMessage(-number))
}
