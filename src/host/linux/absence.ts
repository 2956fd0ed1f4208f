// Is there nothing to remove? Asked only after a removal failed.

import { hasCode } from '../host-error.ts'
import * as libc from './libc.ts'

/** A read-only filesystem says EROFS before it looks whether there is anything to remove. */
export function isAbsent(parent: number, name: libc.Text): boolean {
  try {
    libc.statx(parent, name, libc.AT_SYMLINK_NOFOLLOW | libc.AT_NO_AUTOMOUNT)
    return false
  } catch (error) {
    return hasCode(error, 'ENOENT')
  }
}
