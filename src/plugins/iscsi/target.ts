// Which iSCSI disk is meant, and what are its names? Portals, interface, device and directory names (ISCSI-1 … ISCSI-3). Pure.

import { join } from 'node:path/posix'
import { pluginName } from '../../api/names.ts'
import type { ISCSIPersistentVolumeSource, ISCSIVolumeSource } from '../../api/generated/types.ts'
import { refused } from '../../volume/effect.ts'
import { globalDevicePath, globalPluginPath } from '../../volume/paths.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'

export const iscsiName = pluginName('kubernetes.io/iscsi')

export interface IscsiTarget {
  readonly volumeName: string
  /** With ports; the first is the main one and gives the directory its name. */
  readonly portals: readonly [string, ...string[]]
  readonly iqn: string
  readonly lun: string
  /** The interface given by the user, from which ours is cloned if there is an initiator name. */
  readonly initialInterface: string
  readonly interface: string
  readonly initiatorName: string
}

export function sourceOf(spec: VolumeSpec): ISCSIVolumeSource | ISCSIPersistentVolumeSource {
  if (!hasSource(spec, 'iscsi')) throw refused('WrongSource', `volume ${spec.name} is no iscsi volume`, 'untried')
  return spec.source.value
}

export function targetOf(spec: VolumeSpec): IscsiTarget {
  const source = sourceOf(spec)
  const main = withPort(source.targetPortal)
  const portals = [main, ...(source.portals ?? []).map(withPort)] as const
  const initialInterface =
    source.iscsiInterface === undefined || source.iscsiInterface === '' ? 'default' : source.iscsiInterface
  const initiatorName = source.initiatorName ?? ''
  return {
    volumeName: spec.name,
    portals: [main, ...new Set(portals.slice(1).filter((portal) => portal !== main))],
    iqn: source.iqn,
    lun: String(source.lun),
    initialInterface,
    interface: initiatorName === '' ? initialInterface : `${main}:${spec.name}`,
    initiatorName,
  }
}

function withPort(portal: string): string {
  const hasPort = portal.startsWith('[') ? /\]:\d+$/.test(portal) : portal.includes(':')
  return hasPort ? portal : `${portal}:3260`
}

export function mountDirectory(root: string, target: IscsiTarget): string {
  return join(globalPluginPath(root, iscsiName), interfaceDirectory(target), diskDirectory(target))
}

export function mapDirectory(root: string, target: IscsiTarget): string {
  return join(globalDevicePath(root, iscsiName), interfaceDirectory(target), diskDirectory(target))
}

/** The name under which udev shows the disk of one portal. */
export function devicePathOf(devRoot: string, portal: string, { iqn, lun }: Pick<IscsiTarget, 'iqn' | 'lun'>): string {
  return join(devRoot, 'disk', 'by-path', `ip-${portal}-iscsi-${iqn}-lun-${lun}`)
}

/** The inverse of the directory names: what can be known without the metadata file. */
export function parseDirectory(path: string): IscsiTarget | undefined {
  const [interfacePart = '', diskPart = ''] = path.split('/').slice(-2)
  const match = /^(.+:\d+)-(iqn\..+|eui\..+|naa\..+)-lun-(\d+)$/.exec(diskPart)
  if (match === null || !interfacePart.startsWith('iface-')) return undefined
  const [, portal = '', iqn = '', lun = ''] = match
  const name = interfacePart.slice('iface-'.length)
  const portals = [portal] as const
  const cloned = isCloned({ portals }, name)
  return {
    volumeName: cloned ? name.slice(portal.length + 1) : '',
    portals,
    iqn,
    lun,
    initialInterface: cloned ? 'default' : name,
    interface: name,
    initiatorName: '',
  }
}

/** An interface that was made for one disk of this portal, not given by the user (ISCSI-2). */
export const isCloned = ({ portals }: Pick<IscsiTarget, 'portals'>, name: string): boolean =>
  name.startsWith(`${portals[0]}:`)
const interfaceDirectory = (target: Pick<IscsiTarget, 'interface'>): string => `iface-${target.interface}`
const diskDirectory = ({ portals, iqn, lun }: IscsiTarget): string => `${portals[0]}-${iqn}-lun-${lun}`
