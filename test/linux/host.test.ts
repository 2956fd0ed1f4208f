// Does the real Linux host keep the port's promises? Needs root; makes mounts and loop devices under a temporary directory.

import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { hostContract } from '../contracts/host.ts'

hostContract('linux', async () => {
  const host = createLinuxHost()
  const root = mkdtempSync(join(tmpdir(), 'hawser-host-'))
  return {
    host,
    root,
    async makeDiskFile(path, sizeBytes) {
      writeFileSync(path, '', { flag: 'a' })
      truncateSync(path, sizeBytes)
    },
    async [Symbol.asyncDispose]() {
      const left = readFileSync('/proc/self/mountinfo', 'utf8')
        .split('\n')
        .map((line) => line.split(' ')[4] ?? '')
        .filter((path) => path.startsWith(`${root}/`))
      const signal = new AbortController().signal
      for (const path of left.reverse()) await host.mounts.unmount(path, { lazy: true }, signal)
      rmSync(root, { recursive: true, force: true })
      await host[Symbol.asyncDispose]()
      if (left.length > 0) throw new Error(`mounts were left behind: ${left.join()}`)
    },
  }
})
