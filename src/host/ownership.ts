// Whose group do a volume's files belong to? The fsGroup rules (FSG-1 … FSG-5) over the port.
// The walk itself is the host's (by descriptor); what each entry gets is decided here, for Linux and the model alike.

import type { FileStat, Files } from './host.ts'

type GroupChangePolicy = 'OnRootMismatch' | 'Always'

export interface OwnershipRequest {
  readonly root: string
  /** Absent: nothing to do (FSG-1). */
  readonly gid: number | undefined
  readonly readOnly: boolean
  readonly policy?: GroupChangePolicy | undefined
  readonly onProgress?: (done: number) => void
}

export interface OwnershipResult {
  readonly kind: 'notWanted' | 'skipped' | 'changed'
  readonly entries: number
  readonly refused: number
}

export async function applyOwnership(
  files: Pick<Files, 'stat' | 'setGroup'>,
  request: OwnershipRequest,
  signal: AbortSignal,
): Promise<OwnershipResult> {
  const { root, gid, readOnly, policy, onProgress } = request
  if (gid === undefined) return { kind: 'notWanted', entries: 0, refused: 0 }
  if (policy === 'OnRootMismatch') {
    // A root that cannot be looked at means "do the pass" (FSG-1); the pass itself then tells what is wrong.
    const stat = await files.stat(root, signal).catch(() => undefined)
    if (stat !== undefined && rootMatches(stat, gid, readOnly)) return { kind: 'skipped', entries: 0, refused: 0 }
  }
  const result = await files.setGroup(
    { root, gid, readOnly, ...(onProgress === undefined ? {} : { onProgress }) },
    signal,
  )
  return { kind: 'changed', ...result }
}

function rootMatches(stat: FileStat, gid: number, readOnly: boolean): boolean {
  const wanted = readOnly ? 0o550 : 0o770
  return stat.kind === 'directory' && stat.gid === gid && (stat.mode & wanted) === wanted && (stat.mode & 0o2000) !== 0
}

/** The mode an entry gets: bits are only ever added (FSG-3). */
export function groupMode(mode: number, entry: { readonly directory: boolean; readonly readOnly: boolean }): number {
  const access = entry.readOnly ? 0o440 : 0o660
  return entry.directory ? mode | access | 0o110 | 0o2000 : mode | access
}
