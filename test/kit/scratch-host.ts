// A place for tests on the real machine: a temporary directory and a host; whatever is left mounted is a failure.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LinuxHost, LinuxHostOptions } from '../../src/host/linux/linux-host.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { loopsBelow, mountsBelow } from './machine.ts'

export interface Place extends AsyncDisposable {
  readonly host: LinuxHost
  readonly root: string
  makeDiskFile(path: string, sizeBytes: number): Promise<void>
}

export function openPlace(options: LinuxHostOptions = {}): Place {
  const host = createLinuxHost(options)
  const root = mkdtempSync(join(tmpdir(), 'hawser-host-'))
  return {
    host,
    root,
    async makeDiskFile(path, sizeBytes) {
      writeFileSync(path, '', { flag: 'a' })
      truncateSync(path, sizeBytes)
    },
    async [Symbol.asyncDispose]() {
      const { signal } = new AbortController()
      const left = mountsBelow(root)
      for (const path of left.reverse()) await host.mounts.unmount(path, { lazy: true }, signal)
      // A device whose test was killed under it (or whose filesystem was freed lazily) is still ours to give back.
      for (const device of loopsBelow(root)) await host.devices.detachLoop(device, signal)
      rmSync(root, { recursive: true, force: true })
      await host[Symbol.asyncDispose]()
      if (left.length > 0) throw new Error(`mounts were left behind: ${left.join()}`)
    },
  }
}

/** The directory of a process runtime is a mount of its own, with the containers' below it. */
export async function removeContainers(base: string, directory: string, host: LinuxHost): Promise<void> {
  try {
    execFileSync('umount', ['-R', directory], { stdio: 'ignore' })
  } catch {
    // nothing was mounted
  }
  await host[Symbol.asyncDispose]()
  rmSync(base, { recursive: true, force: true })
}
