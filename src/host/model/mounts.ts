// How does the model mount? The same rules as the kernel, on the model's mount table.

import { join, relative } from 'node:path/posix'
import type { BindRequest, MountRequest, Mounts } from '../host.ts'
import { HostError, hasCode } from '../host-error.ts'
import { mountFailureText, refusalText } from '../mount-failure.ts'
import type { ModelDevices } from './devices.ts'
import { checked, ModelOpenPath } from './files.ts'
import type { ModelMount, MountTable, Position } from './mount-table.ts'
import type { Inode, ModelFilesystem } from './tree.ts'
import { createFilesystem, isDeleted } from './tree.ts'

export interface ModelMountsDeps {
  readonly table: MountTable
  readonly devices: ModelDevices
  /** What network filesystems can be mounted: source ("server:/path") → filesystem. */
  readonly exports: ReadonlyMap<string, ModelFilesystem>
}

const flagWords: ReadonlySet<string> = new Set([
  'ro',
  'rw',
  'nosuid',
  'nodev',
  'noexec',
  'noatime',
  'relatime',
  'nodiratime',
])
const droppedWords: ReadonlySet<string> = new Set(['defaults', '_netdev', 'nofail', 'auto', 'bind', 'rbind'])

interface Model extends ModelMountsDeps {
  /** The minor number of the last filesystem without a device. */
  anonymous: number
}

export function createModelMounts(deps: ModelMountsDeps): Mounts {
  const model: Model = { ...deps, anonymous: 40 }
  return { ...mountingCalls(model), ...propagationCalls(model), ...askingCalls(model) }
}

function mountingCalls(model: Model): Pick<Mounts, 'mount' | 'bind' | 'remount' | 'unmount'> {
  const { table, devices } = model
  return {
    mount: async (request, signal) =>
      checked(signal, request.target, () => {
        if (request.options.includes('bind'))
          return bind(table, { ...request, readOnly: request.options.includes('ro') })
        const at = table.resolve(request.target, { follow: false })
        if (isDeleted(at.inode)) throw new HostError('ENOENT', `${request.target}: deleted`, { path: request.target })
        const filesystem = refusable(request, () => filesystemFor(model, request))
        table.attach(at, filesystem.root, withFlags(['rw', 'relatime'], request.options))
      }),
    bind: async (request, signal) => checked(signal, request.target, () => bind(table, request)),
    remount: async (target, options, signal) =>
      checked(signal, target, () => {
        const { mount } = table.resolve(target, { follow: false })
        mount.options = withFlags(mount.options, options)
        applyData(
          mount.filesystem,
          options.filter((word) => !flagWords.has(word) && word !== 'remount'),
        )
      }),
    unmount: async (target, { lazy }, signal) =>
      checked(signal, target, () => {
        const position = resolveOrNothing(table, target)
        if (position === undefined || position.inode !== position.mount.root || position.mount.parent === undefined)
          return
        if (lazy !== true && table.children(position.mount).length > 0) {
          throw new HostError('EBUSY', `there are mounts below ${target}`, { path: target })
        }
        table.detach(position.mount)
        devices.released(position.mount.filesystem)
      }),
  }
}

function propagationCalls(model: Model): Pick<Mounts, 'setPropagation' | 'makeShared'> {
  const { table } = model
  return {
    setPropagation: async (target, to, { recursive }, signal) =>
      checked(signal, target, () => {
        const { mount, inode } = table.resolve(target)
        if (inode !== mount.root) throw new HostError('EINVAL', `not a mount point: ${target}`, { path: target })
        const all = recursive ? [mount, ...descendants(table, mount)] : [mount]
        for (const one of all) one.propagation = to
      }),
    makeShared: async (path, signal) =>
      checked(signal, path, () => {
        const position = table.resolve(path)
        if (position.mount.propagation === 'shared') return
        const mount =
          position.inode === position.mount.root
            ? position.mount
            : table.attach(position, position.inode, position.mount.options)
        for (const one of [mount, ...descendants(table, mount)]) one.propagation = 'shared'
      }),
  }
}

function askingCalls(model: Model): Pick<Mounts, 'info' | 'isMountPoint' | 'answers' | 'list' | 'references'> {
  const { table } = model
  return {
    info: async (path, signal) => checked(signal, path, () => table.infoOf(table.resolve(path).mount)),
    isMountPoint: async (path, signal) =>
      checked(signal, path, () => {
        const { mount, inode } = table.resolve(path, { follow: false })
        return inode === mount.root
      }),
    // A server that hangs is a planted fault; what the model has itself always answers.
    answers: async (path, _timeoutMs, signal) =>
      checked(signal, path, () => resolveOrNothing(table, path) !== undefined),
    list: async (signal) => checked(signal, '', () => table.mounts().map((mount) => table.infoOf(mount))),
    references: async (path, signal) =>
      checked(signal, path, () => {
        const position = resolveOrNothing(table, path, true)
        if (position === undefined) return []
        const own = table.infoOf(position.mount)
        const root = join(own.root, relative(own.mountPoint, table.pathOf(position)))
        return table
          .mounts()
          .map((mount) => table.infoOf(mount))
          .filter((one) => one.device === own.device && one.root === root && one.id !== own.id)
          .map(({ mountPoint }) => mountPoint)
      }),
  }
}

function filesystemFor(model: Model, request: MountRequest): ModelFilesystem {
  const { devices, exports } = model
  const { type, source, target } = request
  const data = request.options.filter((word) => !flagWords.has(word) && !droppedWords.has(word))
  switch (type) {
    case 'tmpfs':
    case 'hugetlbfs': {
      const device = `0:${(model.anonymous += 1)}`
      const filesystem = createFilesystem({ type, source, device, capacityBytes: 1n << 34n })
      filesystem.root.mode = type === 'tmpfs' ? 0o1777 : 0o755
      return applyData(filesystem, data)
    }
    case 'ext3':
    case 'ext4':
    case 'xfs':
    case 'btrfs':
      return Object.assign(devices.filesystemOn(source, type), { options: data })
    default: {
      const remote = exports.get(source)
      if (remote !== undefined) return remote
      if (!['nfs', 'nfs4', 'cifs'].includes(type))
        throw new HostError('ENODEV', `unknown filesystem type ${type}`, { path: target })
      throw new HostError('CHILD', `${source} does not answer`, { path: target })
    }
  }
}

/** A refusal is told as Linux tells it. */
function refusable(request: MountRequest, make: () => ModelFilesystem): ModelFilesystem {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    const output = error.code === 'CHILD' ? error.message : refusalText(request.target, error.code)
    throw new HostError(error.code, mountFailureText(request, output), { path: request.target, cause: error })
  }
}

function bind(table: MountTable, request: BindRequest): void {
  const { source } = request
  const from: Position =
    source instanceof ModelOpenPath ? source.position : table.resolve(typeof source === 'string' ? source : source.path)
  const at = table.resolve(request.target, { follow: false })
  if (isDeleted(from.inode) || isDeleted(at.inode))
    throw new HostError('ENOENT', `${request.target}: deleted`, { path: request.target })
  const words = [...(request.options ?? []), ...(request.readOnly === true ? ['ro'] : [])]
  const mount = table.attach(at, from.inode, withFlags(from.mount.options, words), from.mount.propagation, 'EINVAL')
  if (request.recursive === true) table.attachSubmounts(from, mount, (old) => withFlags(old, words))
}

function withFlags(current: readonly string[], words: readonly string[]): readonly string[] {
  const result = new Set(current)
  for (const word of words.filter((one) => flagWords.has(one))) {
    if (word === 'ro') result.delete('rw')
    if (word === 'rw') result.delete('ro')
    result.add(word)
  }
  return [...result].sort(
    (left, right) => Number(right === 'rw' || right === 'ro') - Number(left === 'rw' || left === 'ro'),
  )
}

/** Options of the filesystem itself; the kernel shows tmpfs sizes in kilobytes. */
function applyData(filesystem: ModelFilesystem, data: readonly string[]): ModelFilesystem {
  const kept = new Map(filesystem.options.map((word) => [word.split('=')[0] ?? word, word]))
  for (const word of data) {
    const [key = word, value] = word.split('=')
    if (key === 'size' && filesystem.type === 'tmpfs') {
      filesystem.capacityBytes = ((sizeOf(word, value) + 4095n) / 4096n) * 4096n
      kept.set(key, `size=${filesystem.capacityBytes / 1024n}k`)
    } else if (key === 'mode' && value !== undefined) filesystem.root.mode = Number.parseInt(value, 8)
    else kept.set(key, word)
  }
  filesystem.options = [...kept.values()]
  return filesystem
}

function sizeOf(word: string, value = ''): bigint {
  const match = /^(\d+)([kmg]?)$/i.exec(value)
  if (match === null) throw new HostError('EINVAL', `bad option ${word}`)
  const shift = { '': 0n, k: 10n, m: 20n, g: 30n }[(match[2] ?? '').toLowerCase()] ?? 0n
  return BigInt(match[1] ?? '0') << shift
}

function descendants(table: MountTable, mount: ModelMount): ModelMount[] {
  return table.children(mount).flatMap((child) => [child, ...descendants(table, child)])
}

function resolveOrNothing(
  table: MountTable,
  path: string,
  follow = false,
): { mount: ModelMount; inode: Inode } | undefined {
  try {
    return table.resolve(path, { follow })
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}
