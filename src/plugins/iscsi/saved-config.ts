// What must be known about an iSCSI disk after a restart? `iscsi.json` beside the mount, without any password (ISCSI-4).
// Written whole or not at all (WART-6); kubelet's own files are read as well.

import { join } from 'node:path/posix'
import { parseJsonObject } from '../../api/json.ts'
import type { Files } from '../../host/host.ts'
import { readIfThere } from '../../host/read-if-there.ts'
import type { IscsiTarget } from './target.ts'

const fileName = 'iscsi.json'

export async function saveConfig(
  files: Files,
  directory: string,
  target: IscsiTarget,
  signal: AbortSignal,
): Promise<void> {
  const document = {
    VolName: target.volumeName,
    Portals: target.portals,
    Iqn: target.iqn,
    Lun: target.lun,
    InitIface: target.initialInterface,
    Iface: target.interface,
    InitiatorName: target.initiatorName,
    MetricsProvider: null,
  }
  await files.writeFile(join(directory, fileName), JSON.stringify(document), { mode: 0o600, durable: true }, signal)
}

/** Undefined if there is no file or it is damaged: a damaged file must not keep its disk for ever (WART-6). */
export async function loadConfig(
  files: Files,
  directory: string,
  signal: AbortSignal,
): Promise<IscsiTarget | undefined> {
  const text = await readIfThere(files, join(directory, fileName), signal)
  return text === undefined ? undefined : parseConfig(text)
}

export function parseConfig(text: string): IscsiTarget | undefined {
  const fields = parseJsonObject(text) ?? {}
  const word = (key: string): string => (typeof fields[key] === 'string' ? fields[key] : '')
  const portals = Array.isArray(fields['Portals'])
    ? fields['Portals'].filter((portal) => typeof portal === 'string')
    : []
  const [first, ...rest] = portals
  if (first === undefined || word('Iqn') === '') return undefined
  return {
    volumeName: word('VolName'),
    portals: [first, ...rest],
    iqn: word('Iqn'),
    lun: word('Lun'),
    initialInterface: word('InitIface'),
    interface: word('Iface'),
    initiatorName: word('InitiatorName'),
  }
}
