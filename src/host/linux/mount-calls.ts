// How are mounts made, unmade and asked about inside a worker thread? One system call each where the kernel allows it.
// A bind is open_tree + mount_setattr + move_mount: it appears with all its options at once and keeps the source's flags.

import * as fs from 'node:fs'
import type { MountInfo, Propagation } from '../host.ts'
import { HostError, hasCode } from '../host-error.ts'
import * as libc from './libc.ts'
import { MS_REC, MS_REMOUNT } from './mount-options.ts'
import { parseMountinfo, readStatmount, statmountMask } from './mountinfo.ts'

const UMOUNT_NOFOLLOW = 8
const propagationFlags: Readonly<Record<Propagation, number>> = {
  unbindable: 1 << 17,
  private: 1 << 18,
  slave: 1 << 19,
  shared: 1 << 20,
}

export const mountCalls = {
  mount(source: string, target: string, type: string, flags: number, data: string): void {
    // mount(2) would follow a link at the target; a descriptor opened without following cannot lead elsewhere.
    const place = libc.open(target, libc.O_PATH | libc.O_NOFOLLOW)
    try {
      libc.mount(source, `/proc/self/fd/${place}`, type, flags, data === '' ? null : data)
    } finally {
      libc.close(place)
    }
  },

  remount(target: string, flags: number, data: string): void {
    libc.mount(null, target, null, flags | MS_REMOUNT, data === '' ? null : data)
  },

  bind(source: string | number, target: string, set: bigint, clear: bigint, recursive: boolean): void {
    const [directory, path] = typeof source === 'number' ? [source, ''] : [libc.AT_FDCWD, source]
    const flags = (path === '' ? libc.AT_EMPTY_PATH : 0) | (recursive ? libc.AT_RECURSIVE : 0)
    const tree = libc.openTreeClone(directory, path, flags)
    try {
      if (set !== 0n || clear !== 0n) libc.setMountAttributes(tree, { set, clear, recursive })
      libc.moveMount(tree, target)
    } finally {
      libc.close(tree)
    }
  },

  setPropagation(target: string, to: Propagation, recursive: boolean): void {
    libc.mount(null, target, null, propagationFlags[to] | (recursive ? MS_REC : 0), null)
  },

  /** EINVAL, ENOENT and ENOTDIR mean that nothing is mounted there, which is what was asked for. */
  unmount(target: string, flags: number): void {
    try {
      libc.umount2(target, flags | UMOUNT_NOFOLLOW)
    } catch (error) {
      if (!hasCode(error, 'EINVAL', 'ENOENT', 'ENOTDIR')) throw error
    }
  },

  isMountPoint(path: string): boolean {
    const flags = libc.AT_STATX_DONT_SYNC | libc.AT_SYMLINK_NOFOLLOW | libc.AT_NO_AUTOMOUNT
    return (libc.statx(libc.AT_FDCWD, path, flags).attributes & libc.STATX_ATTR_MOUNT_ROOT) !== 0n
  },

  mountInfo(path: string): MountInfo {
    const flags = libc.AT_STATX_DONT_SYNC | libc.AT_NO_AUTOMOUNT
    const { mountId } = libc.statx(libc.AT_FDCWD, path, flags, libc.STATX_MNT_ID_UNIQUE)
    const info = aboutMounts([mountId])[0]
    if (info !== undefined) return info
    const old = libc.statx(libc.AT_FDCWD, path, flags, libc.STATX_MNT_ID).mountId
    const found = mountTable().find(({ id }) => id === old)
    if (found === undefined) throw new HostError('ENOENT', `the mount that holds ${path} is gone`, { path })
    return found
  },

  /** Ids only: 0.15 ms for five thousand mounts. Undefined where the kernel cannot list (before 6.8). */
  mountIds(): bigint[] | undefined {
    try {
      return libc.listmount()
    } catch (error) {
      if (!hasCode(error, 'ENOSYS')) throw error
      return undefined
    }
  },

  aboutMounts,
  mountTable,

  /** mount(8) itself looks in /sbin; whoever puts another mount(8) into the search path has its helpers there. */
  helperExists(type: string, searchPath: string): boolean {
    const directories = ['/sbin', '/usr/sbin', ...searchPath.split(':')]
    return directories.some((directory) => fs.existsSync(`${directory}/mount.${type}`))
  },
}

/** Mounts that vanished meanwhile, or of which this kernel cannot tell the source, are left out. */
function aboutMounts(ids: readonly bigint[]): MountInfo[] {
  const result: MountInfo[] = []
  for (const id of ids) {
    const answer = statmountOrNothing(id)
    const info = answer === undefined ? undefined : readStatmount(answer)
    if (info !== undefined) result.push(info)
  }
  return result
}

function statmountOrNothing(id: bigint): Buffer | undefined {
  try {
    return libc.statmount(id, statmountMask)
  } catch (error) {
    // EINVAL: a kernel before 6.14 does not know every bit of the mask; ENOSYS: before 6.8.
    if (!hasCode(error, 'ENOSYS', 'EINVAL')) throw error
    return undefined
  }
}

function mountTable(): MountInfo[] {
  return parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8'))
}
