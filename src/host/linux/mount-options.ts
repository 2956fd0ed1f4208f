// What does a word after `mount -o` mean to the kernel? Pure: words → flags for mount(2), per-mount attributes, and data.
// Words that only userspace knows (_netdev, nofail, x-…) are dropped (MOUNT-1).

export interface ParsedOptions {
  /** MS_* bits for mount(2). */
  readonly flags: number
  /** MOUNT_ATTR_* bits to set and clear for mount_setattr(2). */
  readonly attributesSet: bigint
  readonly attributesClear: bigint
  /** What is left for the filesystem itself, in order. */
  readonly data: readonly string[]
  readonly bind: 'none' | 'bind' | 'rbind'
}

export const MS_REMOUNT = 0x20
export const MS_REC = 0x4000

const ATIME_MASK = 0x70n
interface Word {
  readonly set?: number
  readonly clear?: number
  readonly attribute?: bigint
  readonly attributeClear?: bigint
}

const words: Readonly<Record<string, Word>> = {
  ro: { set: 0x1, attribute: 0x1n },
  rw: { clear: 0x1, attributeClear: 0x1n },
  nosuid: { set: 0x2, attribute: 0x2n },
  suid: { clear: 0x2, attributeClear: 0x2n },
  nodev: { set: 0x4, attribute: 0x4n },
  dev: { clear: 0x4, attributeClear: 0x4n },
  noexec: { set: 0x8, attribute: 0x8n },
  exec: { clear: 0x8, attributeClear: 0x8n },
  sync: { set: 0x10 },
  async: { clear: 0x10 },
  remount: { set: MS_REMOUNT },
  mand: { set: 0x40 },
  nomand: { clear: 0x40 },
  dirsync: { set: 0x80 },
  nosymfollow: { set: 0x100, attribute: 0x20_0000n },
  noatime: { set: 0x400, attribute: 0x10n, attributeClear: ATIME_MASK },
  atime: { clear: 0x400, attributeClear: ATIME_MASK },
  nodiratime: { set: 0x800, attribute: 0x80n },
  diratime: { clear: 0x800, attributeClear: 0x80n },
  silent: { set: 0x8000 },
  loud: { clear: 0x8000 },
  relatime: { set: 0x20_0000, attributeClear: ATIME_MASK },
  norelatime: { clear: 0x20_0000 },
  iversion: { set: 0x80_0000 },
  noiversion: { clear: 0x80_0000 },
  strictatime: { set: 0x100_0000, attribute: 0x20n, attributeClear: ATIME_MASK },
  nostrictatime: { clear: 0x100_0000 },
  lazytime: { set: 0x200_0000 },
  nolazytime: { clear: 0x200_0000 },
  defaults: {},
}

const userspaceWords: ReadonlySet<string> = new Set([
  '_netdev',
  'nofail',
  'auto',
  'noauto',
  'user',
  'nouser',
  'users',
  'owner',
  'group',
  'nogroup',
])

export function parseMountOptions(options: readonly string[]): ParsedOptions {
  let flags = 0
  let attributesSet = 0n
  let attributesClear = 0n
  let bind: ParsedOptions['bind'] = 'none'
  const data: string[] = []
  for (const option of options.flatMap(splitOptions)) {
    const word = Object.hasOwn(words, option) ? words[option] : undefined
    if (option === 'bind' || option === 'rbind') bind = option
    else if (word !== undefined) {
      flags = (flags & ~(word.clear ?? 0)) | (word.set ?? 0)
      attributesClear |= word.attributeClear ?? 0n
      attributesSet = (attributesSet & ~(word.attributeClear ?? 0n)) | (word.attribute ?? 0n)
    } else if (!isUserspaceOnly(option)) data.push(option)
  }
  return { flags, attributesSet, attributesClear, data, bind }
}

/** Splits at commas outside double quotes: SELinux labels hold commas (MOUNT-15, MOUNT-22). */
export function splitOptions(list: string): string[] {
  const parts: string[] = []
  let current = ''
  let quoted = false
  for (const letter of list) {
    if (letter === '"') quoted = !quoted
    if (letter === ',' && !quoted) {
      parts.push(current)
      current = ''
    } else current += letter
  }
  parts.push(current)
  return parts.filter((part) => part !== '')
}

/** Filesystems whose mounting is a protocol of its own, spoken by a /sbin/mount.<type> program. */
export function needsHelper(type: string): boolean {
  return (
    ['nfs', 'nfs4', 'cifs', 'smb3', 'ceph', 'glusterfs', 'fuse', 'fuseblk'].includes(type) || type.startsWith('fuse.')
  )
}

function isUserspaceOnly(option: string): boolean {
  return (
    userspaceWords.has(option) || option.startsWith('x-') || option.startsWith('X-') || option.startsWith('comment=')
  )
}
