// What machine is this? What a Node object says about it, read once at start.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { arch, availableParallelism, networkInterfaces, release, totalmem } from 'node:os'
import type { NodeDescription } from '../node/status.ts'

/** What the system itself needs is not offered to pods. */
const reservedBytes = 100 * 1024 * 1024

export function describeMachine(name: string, version: string): NodeDescription {
  const memory = (bytes: number) => `${Math.floor(bytes / 1024)}Ki`
  const pods = '250'
  const cpu = String(availableParallelism())
  const architecture = arch() === 'x64' ? 'amd64' : arch()
  return {
    labels: {
      'kubernetes.io/hostname': name,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': architecture,
      'beta.kubernetes.io/os': 'linux',
      'beta.kubernetes.io/arch': architecture,
    },
    addresses: [
      { type: 'InternalIP', address: hostAddress() },
      { type: 'Hostname', address: name },
    ],
    capacity: { cpu, memory: memory(totalmem()), pods },
    allocatable: { cpu, memory: memory(totalmem() - reservedBytes), pods },
    info: {
      machineID: text('/etc/machine-id'),
      systemUUID: text('/sys/class/dmi/id/product_uuid'),
      bootID: text('/proc/sys/kernel/random/boot_id') || randomUUID(),
      kernelVersion: release(),
      osImage: osImage(),
      kubeletVersion: `v1.35.0+hawser-${version}`,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture,
    },
  }
}

export function hostAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1'
}

function osImage(): string {
  const match = /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(text('/etc/os-release'))
  return match?.[1] ?? 'Linux'
}

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

/** Begins to measure; asked later, says for how much of the time since then the event loop was at work (0 … 1). */
export function measureWork(): () => number {
  const begun = performance.eventLoopUtilization()
  return () => performance.eventLoopUtilization(begun).utilization
}
