// How does open-iscsi learn a password? iscsiadm takes it as an argument only, which every process of the machine can see. So it
// is written where iscsiadm would write it: into the record of the target or of the discovery, a file that only root reads.
import { join } from 'node:path/posix'
import type { Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { refused } from '../../volume/effect.ts'

export interface IscsiRecord {
  readonly kind: 'discovery' | 'node'
  /** `address:port`, the address of IPv6 in brackets. */
  readonly portal: string
  readonly iqn: string
  readonly interface: string
}

/** Where distributions keep open-iscsi's records. */
const databases = ['/etc/iscsi', '/var/lib/iscsi']
const end = '# END RECORD'

/** Sets names and values in the record, which iscsiadm has made before. */
export async function writeRecord(
  files: Host['files'],
  record: IscsiRecord,
  settings: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const paths = await recordPaths(files, record, signal)
  if (paths.length === 0)
    throw refused(
      'ChapFailed',
      `iscsi: no ${record.kind} record of portal ${record.portal} below ${databases.join(' or ')}: the CHAP password has no place`,
      'none',
    )
  for (const path of paths) {
    const text = Buffer.from(await files.readFile(path, signal)).toString()
    await files.writeFile(path, withSettings(text, settings), { mode: 0o600, durable: true }, signal)
  }
}

/** A value with the end of a line in it would be a setting of its own. */
function withSettings(text: string, settings: Readonly<Record<string, string>>): string {
  const added = Object.entries(settings).map(([name, value]) => {
    if (/[\n\r\0]/.test(value))
      throw refused('ChapFailed', `iscsi: the value of ${name} has more than one line`, 'none')
    return `${name} = ${value}`
  })
  const lines = text.split('\n').filter((line) => !Object.hasOwn(settings, line.split(' = ', 1)[0]?.trim() ?? ''))
  const at = lines.lastIndexOf(end)
  return lines.toSpliced(at < 0 ? lines.length : at, 0, ...added).join('\n')
}

async function recordPaths(files: Host['files'], record: IscsiRecord, signal: AbortSignal): Promise<string[]> {
  const cut = record.portal.lastIndexOf(':')
  const address = record.portal.slice(0, cut).replace(/^\[|\]$/g, '')
  const place = `${address},${record.portal.slice(cut + 1)}`
  const found: string[] = []
  for (const database of databases) {
    if (record.kind === 'discovery') found.push(join(database, 'send_targets', place, 'st_config'))
    else {
      const directory = join(database, 'nodes', record.iqn)
      // With a portal group it is a directory with a file for each interface; without, a file.
      for (const name of await namesIn(files, directory, signal))
        if (name.startsWith(`${place},`)) found.push(join(directory, name, record.interface))
      found.push(join(directory, place))
    }
  }
  const there = await Promise.all(found.map((path) => isFile(files, path, signal)))
  return found.filter((_, index) => there[index])
}

async function namesIn(files: Host['files'], path: string, signal: AbortSignal): Promise<string[]> {
  try {
    return await files.readDir(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  }
}

async function isFile(files: Host['files'], path: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await files.lstat(path, signal)).kind === 'file'
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    throw error
  }
}
