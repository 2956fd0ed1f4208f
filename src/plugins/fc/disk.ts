// Which Fibre Channel disk is meant, what are its names, and where does the kernel show it? (FC-1 … FC-4)

import { basename, join } from 'node:path/posix'
import { pluginName } from '../../api/names.ts'
import type { FCVolumeSource } from '../../api/generated/types.ts'
import type { Host } from '../../host/host.ts'
import { refused } from '../../volume/effect.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { DeviceTree } from '../disk/multipath.ts'
import { deleteDisk, flushMultipath, multipathParent, names, pathsOf } from '../disk/multipath.ts'

export const fcName = pluginName('kubernetes.io/fc')

export type FcDisk =
  | { readonly kind: 'target'; readonly wwns: readonly string[]; readonly lun: string }
  | { readonly kind: 'identifier'; readonly wwids: readonly string[] }

export interface FcDeps {
  readonly host: Pick<Host, 'files' | 'run' | 'devices'>
  readonly tree: DeviceTree
}

export function sourceOf(spec: VolumeSpec): FCVolumeSource {
  if (!hasSource(spec, 'fc')) throw refused('WrongSource', `volume ${spec.name} is no fc volume`, 'untried')
  return spec.source.value
}

export function diskOf({ targetWWNs = [], lun, wwids = [] }: FCVolumeSource): FcDisk {
  if (targetWWNs.length > 0 && lun !== undefined) return { kind: 'target', wwns: targetWWNs, lun: String(lun) }
  if (wwids.length > 0) return { kind: 'identifier', wwids }
  throw refused('InvalidSource', 'either targetWWNs and lun, or wwids must be given', 'none')
}

/** The volume's name: its WWNs and LUN, or its WWIDs (FC-1). */
export function identityOf(source: FCVolumeSource): string {
  const disk = diskOf(source)
  return disk.kind === 'target' ? `[${disk.wwns.join(' ')}]:${disk.lun}` : `[${disk.wwids.join(' ')}]`
}

/** The name of the disk's directory below the plugin's (FC-2). */
export function directoryName(disk: FcDisk): string {
  if (disk.kind === 'target') return `${disk.wwns.join('-')}-lun-${disk.lun}`
  return disk.wwids.join('-').replaceAll(' ', '_')
}

/** The inverse: `-lun-` in the last but one place means WWNs. WWIDs with dashes or blanks cannot be told apart here. */
export function parseDirectoryName(name: string): FcDisk {
  const parts = name.split('-')
  if (parts.length >= 3 && parts.at(-2) === 'lun')
    return { kind: 'target', wwns: parts.slice(0, -2), lun: parts.at(-1) ?? '0' }
  return { kind: 'identifier', wwids: parts }
}

/** Look, let the adapters scan, look again (FC-3). */
export async function findDisk(deps: FcDeps, disk: FcDisk, signal: AbortSignal): Promise<string> {
  const first = await look(deps, disk, signal)
  if (first !== '') return first
  const base = join(deps.tree.sys, 'class', 'scsi_host')
  for (const adapter of await names(deps.host.files, base, signal)) {
    await deps.host.files.writeFile(join(base, adapter, 'scan'), '- - -', { mode: 0o200 }, signal)
  }
  const second = await look(deps, disk, signal)
  if (second === '') throw refused('DiskMissing', 'no fc disk found', 'none')
  return second
}

async function look(deps: FcDeps, disk: FcDisk, signal: AbortSignal): Promise<string> {
  const { files } = deps.host
  const folder = join(deps.tree.dev, 'disk', disk.kind === 'target' ? 'by-path' : 'by-id')
  const wanted = disk.kind === 'target' ? disk.wwns.map((wwn) => byPathName(wwn, disk.lun)) : disk.wwids.map(byIdName)
  let plain = ''
  for (const entry of await names(files, folder, signal)) {
    if (!wanted.some((matches) => matches(entry))) continue
    const path = await files.realpath(join(folder, entry), signal)
    const parent = await multipathParent(files, deps.tree, path, signal)
    if (parent !== '') return parent
    plain ||= path
  }
  return plain
}

const byPathName =
  (wwn: string, lun: string) =>
  (entry: string): boolean => {
    const end = `fc-0x${wwn}-lun-${lun}`.toLowerCase()
    const name = entry.toLowerCase()
    return name === end || (name.startsWith('pci-') && name.endsWith(`-${end}`))
  }
/** udev writes an underscore for a blank. */
const byIdName =
  (wwid: string) =>
  (entry: string): boolean =>
    entry === `scsi-${wwid.replaceAll(' ', '_')}`

/** Buffers first, then the multipath map, then each path to the disk (FC-4). */
export async function releaseDisk(deps: FcDeps, device: string, signal: AbortSignal): Promise<void> {
  if (device === '' || !(await deps.host.files.exists(device, signal))) return
  const { files, devices } = deps.host
  const resolved = await files.realpath(device, signal)
  const top = (await multipathParent(files, deps.tree, resolved, signal)) || resolved
  const paths = await pathsOf(files, deps.tree, top, signal)
  const problem = basename(top).startsWith('dm-') ? await flushMultipath(deps.host, top, signal) : ''
  // The map is still in use: without its paths, data written to it would be lost.
  if (problem !== '') throw refused('DeviceInUse', `fc: failed to flush multipath device ${top}: ${problem}`, 'unknown')
  for (const path of paths) {
    await devices.flush(path, signal)
    await deleteDisk(files, deps.tree, path, signal)
  }
}
