// What machine is this? What a Node object says about it, read once at start.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { StatsFs } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { arch, availableParallelism, cpus, freemem, networkInterfaces, release, totalmem } from 'node:os'
import type { FilesystemUsage, MachineUsage } from '../node/server/summary.ts'
import type { NodeDescription } from '../node/report/node-status.ts'

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

/** What the machine uses just now; what it cannot tell is left out. */
export async function measureMachine(root: string): Promise<MachineUsage> {
  const [total, available] = [totalmem(), memoryAvailable()]
  const busyMs = cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)
  const usageBytes = total - available
  const fs = await statfs(root).catch(() => undefined) // a root that is not there yet says nothing
  return {
    cpu: { usageCoreNanoSeconds: busyMs * 1_000_000 },
    memory: { availableBytes: available, usageBytes, workingSetBytes: usageBytes },
    ...(fs ? { fs: filesystemUsage(fs) } : {}),
  }
}

function filesystemUsage({ bsize, blocks, bfree, bavail, files, ffree }: StatsFs): FilesystemUsage {
  return {
    availableBytes: bavail * bsize,
    capacityBytes: blocks * bsize,
    usedBytes: (blocks - bfree) * bsize,
    inodesFree: ffree,
    inodes: files,
    inodesUsed: files - ffree,
  }
}

function memoryAvailable(): number {
  const [, kilobytes] = /^MemAvailable:\s+(\d+) kB$/m.exec(text('/proc/meminfo')) ?? []
  return kilobytes === undefined ? freemem() : Number(kilobytes) * 1024
}
