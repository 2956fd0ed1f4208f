// Which block devices does the model have, and what do the disk tools say of them?
// Device nodes are entries of /dev; a disk keeps its contents when its node goes away and comes back.

import type { Devices, Filesystems, LoopRequest } from '../host.ts'
import { HostError, hasCode } from '../host-error.ts'
import type { ModelDevice, ModelDisk } from './disks.ts'
import { createDisk } from './disks.ts'
import { checked } from './files.ts'
import type { MountTable } from './mount-table.ts'
import type { Inode, ModelFilesystem } from './tree.ts'
import { addEntry, blockBytes, createFilesystem, unlink } from './tree.ts'

export interface ModelDevices {
  readonly port: Devices
  readonly filesystems: Filesystems
  /** A disk that appears under a name of /dev; the same disk may come back under another. */
  addDisk(path: string, disk: ModelDisk): void
  removeDisk(path: string): void
  filesystemOn(device: string, type: string): ModelFilesystem
  /** The last mount of a filesystem is gone: loop devices with autoClear go too. */
  released(filesystem: ModelFilesystem): void
  /** Every loop device, for invariants about leaks. */
  loops(): readonly ModelDevice[]
  dropLoops(): void
}

const growable = ['ext3', 'ext4', 'xfs', 'btrfs']

interface Model {
  readonly table: MountTable
  readonly now: () => number
  /** By "major:minor". */
  readonly devices: Map<string, ModelDevice>
  nextDisk: number
}

export function createModelDevices(table: MountTable, now: () => number): ModelDevices {
  const model: Model = { table, now, devices: new Map(), nextDisk: 0 }
  return {
    port: devicePort(model),
    filesystems: filesystemPort(model),
    addDisk(path, disk) {
      model.nextDisk += 1
      const number = `8:${model.nextDisk * 16}`
      const { sizeBytes } = disk
      addDevice(model, { path, number, disk, readOnly: false, backing: undefined, autoClear: false, sizeBytes })
    },
    removeDisk: (path) => dropDevice(model, deviceAt(model, path)),
    filesystemOn: (path, type) => filesystemOn(model, path, type),
    released(filesystem) {
      for (const device of loopsOf(model)) {
        if (device.autoClear && device.disk.filesystem === filesystem && mountCount(model, device.disk) === 0)
          dropDevice(model, device)
      }
    },
    loops: () => loopsOf(model),
    dropLoops() {
      for (const device of loopsOf(model)) dropDevice(model, device)
    },
  }
}

function deviceAt({ table, devices }: Model, path: string): ModelDevice {
  const { inode } = table.resolve(path)
  const device = devices.get(inode.deviceNode)
  if (inode.kind !== 'blockDevice' || device === undefined)
    throw new HostError('ENOTBLK', `not a block device: ${path}`, { path })
  return device
}

function addDevice({ table, devices, now }: Model, device: ModelDevice): void {
  devices.set(device.number, device)
  const { parent, name, inode } = table.find(device.path)
  if (inode !== undefined) throw new HostError('EEXIST', `${device.path} exists`, { path: device.path })
  addEntry(parent.inode, name, { kind: 'blockDevice', mode: 0o660, deviceNode: device.number, now: now() })
}

function dropDevice({ table, devices }: Model, device: ModelDevice): void {
  devices.delete(device.number)
  const { parent, name } = table.find(device.path)
  unlink(parent.inode, name)
}

function mountCount({ table }: Model, disk: ModelDisk): number {
  return table.mounts().filter((mount) => mount.filesystem === disk.filesystem).length
}

function loopsOf({ devices }: Model): readonly ModelDevice[] {
  return [...devices.values()].filter((device) => device.backing !== undefined)
}

function filesystemOn(model: Model, path: string, type: string): ModelFilesystem {
  const device = deviceAt(model, path)
  const { content, filesystem } = device.disk
  if (content.kind !== 'filesystem' || content.type !== type || filesystem === undefined)
    throw new HostError('EINVAL', `${path} holds no ${type}`, { path })
  // A filesystem has one superblock however often it is mounted: its names are those of the first mount.
  if (mountCount(model, device.disk) === 0)
    Object.assign(filesystem, { source: path, device: device.number, readOnly: device.readOnly })
  return filesystem
}

function devicePort(model: Model): Devices {
  const { table } = model
  return {
    sizeBytes: async (device, signal) => checked(signal, device, () => deviceAt(model, device).sizeBytes),
    isReadOnly: async (device, signal) => checked(signal, device, () => deviceAt(model, device).readOnly),
    isInUse: async (device, signal) =>
      checked(signal, device, () => {
        if (table.resolve(device).inode.kind !== 'blockDevice') return false
        return mountCount(model, deviceAt(model, device).disk) > 0
      }),
    attachLoop: async (request, signal) => checked(signal, request.file, () => attachLoop(model, request)),
    detachLoop: async (device, signal) =>
      checked(signal, device, () => {
        const found = loopsOf(model).find(({ path }) => path === device)
        if (found === undefined) return
        if (mountCount(model, found.disk) > 0 && found.disk.filesystem?.source === device)
          throw new HostError('EBUSY', `${device} is mounted`, { path: device })
        dropDevice(model, found)
      }),
    loopsOf: async (file, signal) =>
      checked(signal, file, () =>
        loopsOf(model)
          .filter(({ backing }) => backing === file || backing === realpathOf(table, file))
          .map(({ path }) => path),
      ),
    refreshLoop: async (device, signal) =>
      checked(signal, device, () => {
        deviceAt(model, device).sizeBytes = deviceAt(model, device).disk.sizeBytes
      }),
    flush: async (device, signal) => checked(signal, device, () => void deviceAt(model, device)),
  }
}

function attachLoop(model: Model, { file, readOnly, autoClear }: LoopRequest): string {
  const position = model.table.resolve(file)
  const disk = backingDisk(model, position.inode)
  const minor = freeLoop(model)
  const path = `/dev/loop${minor}`
  addDevice(model, {
    path,
    number: `7:${minor}`,
    disk,
    readOnly,
    backing: model.table.pathOf(position),
    autoClear: autoClear === true,
    sizeBytes: disk.sizeBytes,
  })
  return path
}

function backingDisk({ devices }: Model, inode: Inode): ModelDisk {
  const device = inode.kind === 'blockDevice' ? devices.get(inode.deviceNode) : undefined
  if (device !== undefined) return device.disk
  if (inode.kind !== 'file') throw new HostError('EINVAL', 'only files and block devices can back a loop device')
  inode.disk ??= createDisk(BigInt(inode.bytes.length))
  return inode.disk
}

function freeLoop({ devices }: Model): number {
  for (let number = 0; ; number += 1) if (!devices.has(`7:${number}`)) return number
}

function filesystemPort(model: Model): Filesystems {
  return { ...formatCalls(model), ...usageCalls(model) }
}

function formatCalls(model: Model): Omit<Filesystems, 'usage' | 'treeUsage'> {
  return {
    detect: async (device, signal) => checked(signal, device, () => deviceAt(model, device).disk.content),
    make: async ({ device, type }, signal) =>
      checked(signal, device, () => {
        const { disk, sizeBytes, number } = deviceAt(model, device)
        if (disk.content.kind !== 'blank')
          throw new HostError('EEXIST', `will not format ${device}: it is not blank`, { path: device })
        if (!growable.includes(type))
          throw new HostError('NOPROGRAM', `exec: "mkfs.${type}": executable file not found in $PATH`)
        disk.content = { kind: 'filesystem', type }
        disk.filesystem = createFilesystem({ type, source: device, device: number, capacityBytes: sizeBytes })
      }),
    check: async (device, signal) =>
      checked(signal, device, () => {
        const { disk } = deviceAt(model, device)
        const kind = disk.health
        if (kind === 'corrected') disk.health = 'clean'
        return { kind, exitCode: kind === 'clean' ? 0 : kind === 'corrected' ? 1 : 4, output: '' }
      }),
    grow: async ({ device, mountPath }, signal) =>
      checked(signal, device, () => {
        if (growableType(model, device, mountPath) === undefined) return false
        const { disk, sizeBytes } = deviceAt(model, device)
        if (disk.filesystem !== undefined) disk.filesystem.capacityBytes = sizeBytes
        return true
      }),
    mayGrow: async (device, mountPath, signal) =>
      checked(
        signal,
        device,
        () => !deviceAt(model, device).readOnly && growableType(model, device, mountPath) !== undefined,
      ),
  }
}

function usageCalls({ table }: Model): Pick<Filesystems, 'usage' | 'treeUsage'> {
  return {
    usage: async (path, signal) =>
      checked(signal, path, () => {
        const { capacityBytes, usedBytes, type } = table.resolve(path).inode.filesystem
        const inodes = capacityBytes / 4096n
        const available = capacityBytes - usedBytes
        const shown = type.startsWith('ext') ? 'ext' : type
        return {
          capacityBytes,
          usedBytes,
          availableBytes: available,
          inodes,
          inodesFree: inodes,
          inodesUsed: 0n,
          type: shown,
        }
      }),
    treeUsage: async (path, signal) =>
      checked(signal, path, () => {
        let usedBytes = 0n
        let inodesUsed = 0n
        const visit = (inode: Inode): void => {
          usedBytes += blockBytes(inode.bytes.length, inode.kind)
          inodesUsed += 1n
          for (const child of inode.entries.values()) if (!table.isCovered(child)) visit(child)
        }
        visit(table.resolve(path).inode)
        return { usedBytes, inodesUsed }
      }),
  }
}

function growableType(model: Model, device: string, mountPath: string): string | undefined {
  const { content } = deviceAt(model, device).disk
  if (content.kind === 'blank') return undefined
  const type = content.kind === 'filesystem' ? content.type : content.description
  if (growable.includes(type)) return type
  const text = `resize of format ${type} is not supported for device ${device} mounted at ${mountPath}`
  throw new HostError('ENOTSUP', text, { path: device })
}

function realpathOf(table: MountTable, path: string): string {
  try {
    return table.pathOf(table.resolve(path))
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return path
    throw error
  }
}
