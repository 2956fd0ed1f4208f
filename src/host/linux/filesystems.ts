// What is on a disk, and how is it made, checked and grown? By the tools everyone trusts (blkid, mkfs, fsck, resize2fs, …).
// They are child processes with deadlines: a disk that hangs stops only its own child.

import type { CheckResult, CommandResult, DiskContent, Filesystems, Host } from '../host.ts'
import { HostError, hasCode } from '../host-error.ts'
import type { WorkerPool } from './worker-pool.ts'

const probeTimeoutMs = 60_000
const makeTimeoutMs = 30 * 60_000
const checkTimeoutMs = 2 * 3_600_000
const growTimeoutMs = 30 * 60_000

export function createLinuxFilesystems(pool: WorkerPool, run: Host['run']): Filesystems {
  const detect = (device: string, signal: AbortSignal) => detectContent(pool, run, device, signal)
  return {
    detect,

    async make({ device, type, options = [] }, signal) {
      const content = await detect(device, signal)
      if (content.kind !== 'blank')
        throw new HostError('EEXIST', `will not format ${device}: it holds ${describeContent(content)}`, {
          path: device,
        })
      const words = [...options, ...makeOptions(type), device] as const
      const result = await run({ argv: [`mkfs.${type}`, ...words], timeoutMs: makeTimeoutMs }, signal)
      if (result.exitCode !== 0) throw childError(`mkfs.${type} ${device}`, result, device)
    },

    check: (device, signal) => checkDisk(run, device, signal),

    async grow({ device, mountPath }, signal) {
      const content = await detect(device, signal)
      if (content.kind === 'blank') return false
      const argv = growCommand(content, device, mountPath)
      const result = await run({ argv, timeoutMs: growTimeoutMs }, signal)
      if (result.exitCode !== 0) throw growError(argv, result, device)
      return true
    },

    async mayGrow(device, mountPath, signal) {
      if (await pool.call('deviceReadOnly', [device], { path: device }, signal)) return false
      const content = await detect(device, signal)
      if (content.kind === 'blank') return false
      growCommand(content, device, mountPath)
      if (content.kind !== 'filesystem' || content.type !== 'btrfs') return true
      const superblock = await run(
        { argv: ['btrfs', 'inspect-internal', 'dump-super', '-f', device], timeoutMs: probeTimeoutMs },
        signal,
      )
      if (superblock.exitCode !== 0) throw childError(`btrfs inspect-internal dump-super ${device}`, superblock, device)
      const size = await pool.call('deviceSize', [device], { path: device }, signal)
      return size > fieldOf(superblock.stdout, 'total_bytes') + fieldOf(superblock.stdout, 'sectorsize')
    },

    usage: (path, signal) => pool.call('usage', [path], { path }, signal),
    treeUsage: (path, signal) => pool.call('treeUsage', [path], { path, walk: true }, signal),
  }
}

async function detectContent(
  pool: WorkerPool,
  run: Host['run'],
  device: string,
  signal: AbortSignal,
): Promise<DiskContent> {
  const argv = ['blkid', '-p', '-s', 'TYPE', '-s', 'PTTYPE', '-o', 'export', device] as const
  const result = await run({ argv, timeoutMs: probeTimeoutMs }, signal)
  if (result.exitCode === 2) {
    // "Nothing found" is also what blkid says of a disk it could not read or does not know; a blank disk is zeros (WART-12).
    const size = await pool.call('deviceSize', [device], { path: device }, signal)
    const zero = await pool.call('endsAreZero', [device, size], { path: device }, signal)
    return zero ? { kind: 'blank' } : unnamed
  }
  if (result.exitCode !== 0) throw childError(`blkid ${device}`, result, device)
  return parseBlkid(result.stdout, device)
}

const unnamed: DiskContent = { kind: 'unknown', description: 'data that blkid does not name' }

/** FMT-2: KEY=VALUE lines; a partition table means data that is not ours to overwrite. */
export function parseBlkid(output: string, device: string): DiskContent {
  let type: string | undefined
  let partitions: string | undefined
  for (const line of output.split('\n').filter((text) => text !== '')) {
    const equals = line.indexOf('=')
    if (equals <= 0) throw new HostError('FORMAT', `blkid returns invalid output: ${output}`, { path: device })
    if (line.startsWith('TYPE=')) type = line.slice(equals + 1)
    if (line.startsWith('PTTYPE=')) partitions = line.slice(equals + 1)
  }
  if (partitions !== undefined && partitions !== '')
    return { kind: 'unknown', description: 'unknown data, probably partitions' }
  if (type === undefined || type === '') return unnamed
  return { kind: 'filesystem', type }
}

/** The exit status is a set of bits: 1 corrected, 4 errors left, 8 and more: the check itself failed (WART-12). */
async function checkDisk(run: Host['run'], device: string, signal: AbortSignal): Promise<CheckResult> {
  let result: CommandResult
  try {
    result = await run({ argv: ['fsck', '-a', device], timeoutMs: checkTimeoutMs }, signal)
  } catch (error) {
    if (!hasCode(error, 'NOPROGRAM')) throw error
    return { kind: 'unavailable', exitCode: -1, output: 'fsck is not installed' }
  }
  const { exitCode } = result
  const kind =
    exitCode === 0 ? 'clean' : (exitCode & 4) !== 0 ? 'errorsLeft' : (exitCode & ~3) === 0 ? 'corrected' : 'failed'
  return { kind, exitCode, output: `${result.stdout}${result.stderr}` }
}

/** ext: force, and reserve no blocks for root. xfs: force (FMT-3). */
function makeOptions(type: string): readonly string[] {
  if (type === 'ext3' || type === 'ext4') return ['-F', '-m0']
  return type === 'xfs' ? ['-f'] : []
}

function growCommand(content: DiskContent, device: string, mountPath: string): [string, ...string[]] {
  const type = content.kind === 'filesystem' ? content.type : ''
  switch (type) {
    case 'ext3':
    case 'ext4':
      return ['resize2fs', device]
    case 'xfs':
      return ['xfs_growfs', '-d', mountPath]
    case 'btrfs':
      return ['btrfs', 'filesystem', 'resize', 'max', mountPath]
    default:
      throw new HostError(
        'ENOTSUP',
        `resize of format ${describeContent(content)} is not supported for device ${device} mounted at ${mountPath}`,
        {
          path: device,
        },
      )
  }
}

function growError(argv: readonly string[], result: CommandResult, device: string): HostError {
  const error = childError(argv.join(' '), result, device)
  if (!error.message.includes('Permission denied to resize filesystem')) return error
  const hint = `${error.message}; growing a mounted ext4 filesystem needs the capability CAP_SYS_RESOURCE`
  return new HostError('EPERM', hint, { path: device, cause: error })
}

function childError(what: string, result: CommandResult, device: string): HostError {
  const output = `${result.stdout}${result.stderr}`.trim()
  const { exitCode } = result
  return new HostError('CHILD', `${what} failed: exit status ${exitCode}: ${output}`, {
    path: device,
    child: { exitCode, output },
  })
}

function describeContent(content: DiskContent): string {
  if (content.kind === 'blank') return 'nothing'
  return content.kind === 'filesystem' ? content.type : content.description
}

function fieldOf(output: string, name: string): bigint {
  const value = new RegExp(`^${name}\\s+(\\d+)`, 'm').exec(output)?.[1]
  if (value === undefined) throw new HostError('FORMAT', `btrfs did not tell ${name}`)
  return BigInt(value)
}
