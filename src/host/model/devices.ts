// Which block devices does the model have, and what do the disk tools say of them?
// Device nodes are entries of /dev; a disk keeps its contents when its node goes away and comes back.

import type { Devices, DiskContent, Filesystems } from '../host.ts'
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

export function createModelDevices(table: MountTable, now: () => number): ModelDevices {
  const byNumber = new Map<string, ModelDevice>()
  let nextDisk = 0

  function at(path: string): ModelDevice {
    const { inode } = table.resolve(path)
    const device = byNumber.get(inode.deviceNode)
    if (inode.kind !== 'blockDevice' || device === undefined)
      throw new HostError('ENOTBLK', `not a block device: ${path}`, { path })
    return device
  }
  function add(device: ModelDevice): void {
    byNumber.set(device.number, device)
    const { parent, name, inode } = table.find(device.path)
    if (inode !== undefined) throw new HostError('EEXIST', `${device.path} exists`, { path: device.path })
    addEntry(parent.inode, name, { kind: 'blockDevice', mode: 0o660, deviceNode: device.number, now: now() })
  }
  function drop(device: ModelDevice): void {
    byNumber.delete(device.number)
    const { parent, name } = table.find(device.path)
    unlink(parent.inode, name)
  }
  const mountsOf = (disk: ModelDisk): number =>
    table.mounts().filter((mount) => mount.filesystem === disk.filesystem).length
  const loops = (): ModelDevice[] => [...byNumber.values()].filter((device) => device.backing !== undefined)

  function backingDisk(inode: Inode): ModelDisk {
    if (inode.kind === 'blockDevice') {
      const device = byNumber.get(inode.deviceNode)
      if (device !== undefined) return device.disk
    }
    if (inode.kind !== 'file') throw new HostError('EINVAL', 'only files and block devices can back a loop device')
    inode.disk ??= createDisk(BigInt(inode.bytes.length))
    return inode.disk
  }
  function freeLoop(): number {
    for (let number = 0; ; number += 1) if (!byNumber.has(`7:${number}`)) return number
  }

  const port: Devices = {
    sizeBytes: async (device, signal) => checked(signal, device, () => at(device).sizeBytes),
    isReadOnly: async (device, signal) => checked(signal, device, () => at(device).readOnly),
    isInUse: async (device, signal) =>
      checked(signal, device, () => {
        if (table.resolve(device).inode.kind !== 'blockDevice') return false
        return mountsOf(at(device).disk) > 0
      }),
    attachLoop: async ({ file, readOnly, autoClear }, signal) =>
      checked(signal, file, () => {
        const position = table.resolve(file)
        const disk = backingDisk(position.inode)
        const number = freeLoop()
        const backing = table.pathOf(position)
        add({
          path: `/dev/loop${number}`,
          number: `7:${number}`,
          disk,
          readOnly,
          backing,
          autoClear: autoClear === true,
          sizeBytes: disk.sizeBytes,
        })
        return `/dev/loop${number}`
      }),
    detachLoop: async (device, signal) =>
      checked(signal, device, () => {
        const found = loops().find(({ path }) => path === device)
        if (found === undefined) return
        if (mountsOf(found.disk) > 0 && found.disk.filesystem?.source === device)
          throw new HostError('EBUSY', `${device} is mounted`, { path: device })
        drop(found)
      }),
    loopsOf: async (file, signal) =>
      checked(signal, file, () =>
        loops()
          .filter(({ backing }) => backing === file || backing === realpathOf(table, file))
          .map(({ path }) => path),
      ),
    refreshLoop: async (device, signal) =>
      checked(signal, device, () => {
        at(device).sizeBytes = at(device).disk.sizeBytes
      }),
    flush: async (device, signal) => checked(signal, device, () => void at(device)),
  }

  return {
    port,
    filesystems: createModelFilesystems(table, at),
    addDisk(path, disk) {
      nextDisk += 1
      add({
        path,
        number: `8:${nextDisk * 16}`,
        disk,
        readOnly: false,
        backing: undefined,
        autoClear: false,
        sizeBytes: disk.sizeBytes,
      })
    },
    removeDisk: (path) => drop(at(path)),
    filesystemOn(path, type) {
      const device = at(path)
      const { content, filesystem } = device.disk
      if (content.kind !== 'filesystem' || content.type !== type || filesystem === undefined) {
        throw new HostError('EINVAL', `${path} holds no ${type}`, { path })
      }
      // A filesystem has one superblock however often it is mounted: its names are those of the first mount.
      if (mountsOf(device.disk) === 0)
        Object.assign(filesystem, { source: path, device: device.number, readOnly: device.readOnly })
      return filesystem
    },
    released(filesystem) {
      for (const device of loops()) {
        if (device.autoClear && device.disk.filesystem === filesystem && mountsOf(device.disk) === 0) drop(device)
      }
    },
    loops,
    dropLoops() {
      for (const device of loops()) drop(device)
    },
  }
}

function createModelFilesystems(table: MountTable, at: (path: string) => ModelDevice): Filesystems {
  const content = (device: string): DiskContent => at(device).disk.content
  const growableType = (device: string, mountPath: string): string | undefined => {
    const found = content(device)
    if (found.kind === 'blank') return undefined
    const type = found.kind === 'filesystem' ? found.type : found.description
    if (growable.includes(type)) return type
    throw new HostError(
      'ENOTSUP',
      `resize of format ${type} is not supported for device ${device} mounted at ${mountPath}`,
      { path: device },
    )
  }
  return {
    detect: async (device, signal) => checked(signal, device, () => content(device)),
    make: async ({ device, type }, signal) =>
      checked(signal, device, () => {
        const { disk, sizeBytes, number } = at(device)
        if (disk.content.kind !== 'blank')
          throw new HostError('EEXIST', `will not format ${device}: it is not blank`, { path: device })
        if (!growable.includes(type))
          throw new HostError('NOPROGRAM', `exec: "mkfs.${type}": executable file not found in $PATH`)
        disk.content = { kind: 'filesystem', type }
        disk.filesystem = createFilesystem({ type, source: device, device: number, capacityBytes: sizeBytes })
      }),
    check: async (device, signal) =>
      checked(signal, device, () => {
        const { disk } = at(device)
        const kind = disk.health
        if (kind === 'corrected') disk.health = 'clean'
        return { kind, exitCode: kind === 'clean' ? 0 : kind === 'corrected' ? 1 : 4, output: '' }
      }),
    grow: async ({ device, mountPath }, signal) =>
      checked(signal, device, () => {
        if (growableType(device, mountPath) === undefined) return false
        const { disk, sizeBytes } = at(device)
        if (disk.filesystem !== undefined) disk.filesystem.capacityBytes = sizeBytes
        return true
      }),
    mayGrow: async (device, mountPath, signal) =>
      checked(signal, device, () => !at(device).readOnly && growableType(device, mountPath) !== undefined),
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

function realpathOf(table: MountTable, path: string): string {
  try {
    return table.pathOf(table.resolve(path))
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return path
    throw error
  }
}
