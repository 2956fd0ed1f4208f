// What is mounted, in the port's words? Pure readers of statmount(2)'s answer and of /proc/self/mountinfo lines.
// Octal escapes are decoded, so paths with blanks compare equal (WART-13).

import type { MountInfo, Propagation } from '../host.ts'
import { splitOptions } from './mount-options.ts'

/** SB_BASIC, MNT_BASIC, MNT_ROOT, MNT_POINT, FS_TYPE, MNT_OPTS, FS_SUBTYPE, SB_SOURCE. */
export const statmountMask = 0x1n | 0x2n | 0x8n | 0x10n | 0x20n | 0x80n | 0x100n | 0x200n
const MASK_SB_SOURCE = 0x200n
const MASK_MNT_OPTS = 0x80n
const MASK_FS_SUBTYPE = 0x100n

/** Undefined where the kernel is too old to name the source: the caller then reads mountinfo. */
export function readStatmount(answer: Buffer): MountInfo | undefined {
  const mask = answer.readBigUInt64LE(8)
  if ((mask & MASK_SB_SOURCE) === 0n) return undefined
  const text = (offset: number) => textAt(answer, 512 + answer.readUInt32LE(offset))
  const subtype = (mask & MASK_FS_SUBTYPE) === 0n ? '' : text(120)
  const superFlags = answer.readUInt32LE(32)
  const options = (mask & MASK_MNT_OPTS) === 0n ? '' : text(4)
  return {
    id: answer.readBigUInt64LE(40),
    parentId: answer.readBigUInt64LE(48),
    mountPoint: text(108),
    root: text(104),
    device: `${answer.readUInt32LE(16)}:${answer.readUInt32LE(20)}`,
    type: subtype === '' ? text(36) : `${text(36)}.${subtype}`,
    source: text(124),
    options: attributeWords(answer.readBigUInt64LE(64)),
    superOptions: [(superFlags & 1) === 0 ? 'rw' : 'ro', ...splitOptions(options)],
    propagation: propagationOf(answer.readBigUInt64LE(72)),
  }
}

/** Lines of /proc/self/mountinfo (MOUNT-15). Malformed lines are an error: guessing about mounts is dangerous. */
export function parseMountinfo(content: string): MountInfo[] {
  return content
    .split('\n')
    .filter((line) => line !== '')
    .map(parseLine)
}

function parseLine(line: string): MountInfo {
  const fields = line.split(' ')
  const dash = fields.indexOf('-', 6)
  const [id, parent, device, root, mountPoint, options] = fields
  const [type, source, superOptions] = dash === -1 ? [] : fields.slice(dash + 1)
  if (
    id === undefined ||
    parent === undefined ||
    device === undefined ||
    root === undefined ||
    mountPoint === undefined
  ) {
    throw new Error(`not a mountinfo line: ${line}`)
  }
  if (options === undefined || type === undefined || source === undefined)
    throw new Error(`not a mountinfo line: ${line}`)
  return {
    id: BigInt(id),
    parentId: BigInt(parent),
    mountPoint: unescapeOctal(mountPoint),
    root: unescapeOctal(root),
    device,
    type,
    source: unescapeOctal(source),
    options: splitOptions(options),
    superOptions: splitOptions(unescapeOctal(superOptions ?? '')),
    propagation: propagationOfFields(fields.slice(6, dash)),
  }
}

export function unescapeOctal(text: string): string {
  if (!text.includes('\\')) return text
  const bytes: number[] = []
  for (let index = 0; index < text.length; index += 1) {
    const octal = /^\\([0-7]{3})/.exec(text.slice(index, index + 4))?.[1]
    if (octal === undefined) bytes.push(...Buffer.from(text[index] ?? ''))
    else {
      bytes.push(Number.parseInt(octal, 8))
      index += 3
    }
  }
  return Buffer.from(bytes).toString()
}

function propagationOfFields(fields: readonly string[]): Propagation {
  if (fields.some((field) => field.startsWith('shared:'))) return 'shared'
  if (fields.some((field) => field.startsWith('master:'))) return 'slave'
  return fields.includes('unbindable') ? 'unbindable' : 'private'
}

function propagationOf(bits: bigint): Propagation {
  if ((bits & (1n << 20n)) !== 0n) return 'shared'
  if ((bits & (1n << 19n)) !== 0n) return 'slave'
  return (bits & (1n << 17n)) === 0n ? 'private' : 'unbindable'
}

function attributeWords(attributes: bigint): string[] {
  const result = [(attributes & 0x1n) === 0n ? 'rw' : 'ro']
  if ((attributes & 0x2n) !== 0n) result.push('nosuid')
  if ((attributes & 0x4n) !== 0n) result.push('nodev')
  if ((attributes & 0x8n) !== 0n) result.push('noexec')
  if ((attributes & 0x10n) !== 0n) result.push('noatime')
  if ((attributes & 0x80n) !== 0n) result.push('nodiratime')
  if ((attributes & 0x70n) === 0n) result.push('relatime')
  return result
}

function textAt(buffer: Buffer, start: number): string {
  return buffer.toString('utf8', start, buffer.indexOf(0, start))
}
