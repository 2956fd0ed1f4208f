// Which path do people mean? One without doubled slashes, `.` and a slash at the end, as Go's `path.Clean` answers. Pure.

import { normalize } from 'node:path/posix'

export function cleanPath(path: string): string {
  // `normalize` alone keeps a slash at the end.
  return normalize(path).replace(/(.)\/$/, '$1')
}
