// How does a test run containers as real processes? A runtime below one directory, and requests with sensible defaults.
import { join } from 'node:path'
import type { PodUid } from '../../src/api/names.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import type { LinuxHost } from '../../src/host/linux/linux-host.ts'
import { createLinuxProcesses } from '../../src/host/linux/processes.ts'
import type { ContainerRequest } from '../../src/node/runtime/port.ts'
import { createProcessRuntime } from '../../src/node/runtime/processes.ts'
import { silentLog } from '../../src/telemetry/log.ts'

/** Containers in `<base>/containers`, their output in `<base>/logs`. */
export function createRuntimeIn(base: string, host: LinuxHost, hidden: readonly string[] = []) {
  const clock = createSystemClock()
  return createProcessRuntime({
    host,
    processes: createLinuxProcesses({ clock }),
    clock,
    log: silentLog,
    directory: join(base, 'containers'),
    logDirectory: join(base, 'logs'),
    hidden,
  })
}

export function containerRequest(pod: PodUid, more: Partial<ContainerRequest>): ContainerRequest {
  return {
    pod,
    podName: 'p',
    namespace: 'default',
    name: 'c',
    attempt: 0,
    graceMs: 30_000,
    argv: ['sleep', '60'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    workingDirectory: '/',
    groups: [],
    readOnlyRoot: false,
    mounts: [],
    devices: [],
    ...more,
  }
}
