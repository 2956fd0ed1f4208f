// How is the in-memory host put together? A root filesystem, a mount table, devices, programs and faults.
// It is a whole small machine: `reboot` forgets what a real one forgets.

import { dirname } from 'node:path/posix'
import type { Clock } from '../../clock/clock.ts'
import type { Command, CommandResult, FileKind, Host } from '../host.ts'
import { HostError } from '../host-error.ts'
import { createModelDevices } from './devices.ts'
import type { ModelDevice, ModelDisk } from './disks.ts'
import { createDisk } from './disks.ts'
import type { Faults } from './faults.ts'
import { createFaults, withFaults } from './faults.ts'
import { checked, createModelFiles } from './files.ts'
import { MountTable } from './mount-table.ts'
import { createModelMounts } from './mounts.ts'
import type { ModelFilesystem } from './tree.ts'
import { addEntry, createFilesystem } from './tree.ts'

/** A program of the model: what it answers. It may call the host, as a real tool would. */
type ModelProgram = (command: Command, signal: AbortSignal) => CommandResult | Promise<CommandResult>

export interface ModelHost extends Host {
  readonly faults: Faults
  /** The same machine, but no fault strikes: for stand-ins that act on it from outside. */
  readonly quiet: Host
  readonly programs: Map<string, ModelProgram>
  /** Network filesystems by source ("server:/export"). */
  readonly exports: Map<string, ModelFilesystem>
  readonly rootFilesystem: ModelFilesystem
  /** Makes a sparse file that can back a loop device, or changes its size. */
  makeDiskFile(path: string, sizeBytes: bigint): void
  /** A disk appears (a cloud attached it); the same disk may be given again later. */
  addDisk(path: string, disk?: ModelDisk): ModelDisk
  removeDisk(path: string): void
  /** Sockets, fifos and devices that the port cannot make. */
  makeSpecial(path: string, kind: FileKind): void
  loops(): readonly ModelDevice[]
  /** All mounts but the root's are gone, loop devices too; files on disks stay. */
  reboot(): void
}

export function createModelHost({ clock }: { readonly clock: Clock }): ModelHost {
  const now = (): number => clock.now()
  const rootFilesystem = createFilesystem({
    type: 'ext4',
    source: '/dev/root',
    device: '8:1',
    capacityBytes: 1n << 40n,
  })
  for (const name of ['dev', 'tmp', 'var', 'proc', 'sys'])
    addEntry(rootFilesystem.root, name, { kind: 'directory', mode: 0o755, now: 0 })
  const table = new MountTable(rootFilesystem)
  const devices = createModelDevices(table, now)
  const exports = new Map<string, ModelFilesystem>()
  const programs = new Map<string, ModelProgram>([
    ['true', () => ({ exitCode: 0, stdout: '', stderr: '' })],
    ['false', () => ({ exitCode: 1, stdout: '', stderr: '' })],
  ])
  const faults = createFaults()
  const files = createModelFiles({ table, now })
  const plain: Host = {
    files,
    mounts: createModelMounts({ table, devices, exports }),
    devices: devices.port,
    filesystems: devices.filesystems,
    run: async (command, signal) => {
      const program = checked(signal, command.argv[0], () => programs.get(command.argv[0]))
      if (program === undefined)
        throw new HostError('NOPROGRAM', `exec: "${command.argv[0]}": executable file not found in $PATH`)
      return program(command, signal)
    },
  }
  return {
    ...withFaults(plain, faults, clock),
    faults,
    quiet: plain,
    programs,
    exports,
    rootFilesystem,
    makeDiskFile(path, sizeBytes) {
      const { inode, parent, name } = table.find(path)
      const file = inode ?? addEntry(parent.inode, name, { kind: 'file', mode: 0o600, now: now() })
      file.disk ??= createDisk(sizeBytes)
      file.disk.sizeBytes = sizeBytes
    },
    addDisk(path, disk = createDisk(1n << 30n)) {
      devices.addDisk(path, disk)
      return disk
    },
    removeDisk: (path) => devices.removeDisk(path),
    makeSpecial(path, kind) {
      const { inode } = table.resolve(dirname(path))
      addEntry(inode, path.slice(path.lastIndexOf('/') + 1), {
        kind,
        mode: 0o644,
        now: now(),
        deviceNode: kind === 'charDevice' ? '1:3' : '',
      })
    },
    loops: () => devices.loops(),
    reboot() {
      for (const mount of table.children(table.rootMount)) table.detach(mount)
      devices.dropLoops()
    },
  }
}
