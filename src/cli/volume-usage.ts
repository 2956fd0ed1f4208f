// How full is a volume, and where is it on this machine? Asked of the nodes that mount it, and of our own mount table.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parseMountinfo } from '../host/linux/mountinfo.ts'
import type { Connection } from './connect.ts'

/** What nodes say about claims that are mounted there; by `namespace/name`. */
export type Usage = ReadonlyMap<string, number>

const timeoutMs = 3_000

/** A node that does not answer, or that we may not ask, tells nothing: its volumes have no figure. */
export async function gatherUsage({ client, transport }: Connection): Promise<Usage> {
  const { items: nodes } = await client.list('Node')
  const summaries = await Promise.all(
    nodes.map(({ metadata }) => {
      const path = `/api/v1/nodes/${encodeURIComponent(metadata.name)}/proxy/stats/summary`
      return transport.request({ method: 'GET', path }, AbortSignal.timeout(timeoutMs)).catch(() => undefined)
    }),
  )
  return new Map(summaries.flatMap(usageIn))
}

/** The parts of a kubelet's summary that we read. */
interface Summary {
  readonly pods?: readonly { readonly volume?: readonly VolumeStats[] }[]
}

interface VolumeStats {
  readonly usedBytes?: number
  readonly pvcRef?: { readonly name: string; readonly namespace: string }
}

export function usageIn(summary: unknown): [string, number][] {
  const { pods = [] } = (summary ?? {}) as Summary
  return pods
    .flatMap(({ volume = [] }) => volume)
    .flatMap(({ usedBytes, pvcRef }): [string, number][] =>
      pvcRef === undefined || usedBytes === undefined ? [] : [[`${pvcRef.namespace}/${pvcRef.name}`, usedBytes]],
    )
}

/** 1.5Gi, 20Mi: two digits are enough to see how full something is. */
export function shortSize(bytes: number): string {
  const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi']
  let [value, unit] = [bytes, 0]
  while (value >= 1_024 && unit < units.length - 1) [value, unit] = [value / 1_024, unit + 1]
  const digits = value < 10 && unit > 0 ? 1 : 0
  return `${value.toFixed(digits).replace(/\.0$/, '')}${units[unit]}`
}

/** Directories of this machine at which pods see the volume, and the image file behind them. */
export function pathsHere(volume: string, mountinfo = readFileSync('/proc/self/mountinfo', 'utf8')): readonly string[] {
  const mounts = parseMountinfo(mountinfo).filter(
    ({ mountPoint }) =>
      mountPoint.includes('/pods/') && new RegExp(`/volumes/[^/]+/${volume}(/mount)?$`).test(mountPoint),
  )
  const images = mounts.flatMap(({ source }) => backingFile(source))
  return [...new Set([...mounts.map(({ mountPoint }) => mountPoint), ...images])]
}

function backingFile(device: string): string[] {
  if (!device.startsWith('/dev/loop')) return []
  try {
    return [readFileSync(`/sys/block/${basename(device)}/loop/backing_file`, 'utf8').trim()]
  } catch {
    return [] // detached meanwhile
  }
}
