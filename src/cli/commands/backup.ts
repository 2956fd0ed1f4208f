// `hawser backup` and `hawser restore`: every object and the keys of the data directory in one file, and back.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import type { PersistentVolume } from '../../api/generated/types.ts'
import type { Backup } from '../../installation/backup.ts'
import { nodesOf, volumesWithoutData } from '../../installation/backup-coverage.ts'
import { builtInDriver, UsageError } from '../../installation/config.ts'
import type { SavedImage } from '../../installation/volume-data.ts'
import { lockHolder } from '../../installation/data-directory.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import { catchInterrupts } from '../interrupts.ts'
import type { Interrupts } from '../interrupts.ts'
import { startProgress } from '../wait.ts'

interface Flags {
  readonly dataDir?: string
}

interface BackupFlags extends Flags, ConnectFlags {
  readonly withData: boolean
  readonly since?: string
}

const dataDirFlag = {
  kind: 'parsed',
  parse: String,
  optional: true,
  placeholder: 'DIR',
  brief: 'The data directory (default: that of hawser up)',
} as const

export const backup = buildCommand<BackupFlags, [string], Context>({
  docs: {
    brief: 'Write every object into one file, and the data of volumes beside it',
    fullDescription: [
      'Writes all objects and the keys of the data directory into FILE (mode 0600: it holds secrets).',
      'The backup is consistent if the server is stopped. While it runs, one kind is read after the other.',
      'With --with-data, the data of the built-in driver goes into FILE.data (holes are left out). Each filesystem in use',
      'is frozen while it is copied: its writers wait. --since links what has not changed since an earlier backup.',
      '',
      'Examples:',
      '  hawser backup /srv/backup/hawser-monday.jsonl',
      '  hawser backup monday.jsonl --data-dir /srv/hawser',
      '  sudo hawser backup monday.jsonl --with-data',
      '  sudo hawser backup tuesday.jsonl --with-data --since monday.jsonl',
      '  hawser backup remote.jsonl --kubeconfig other.kubeconfig      # objects only, no keys',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      dataDir: dataDirFlag,
      withData: { kind: 'boolean', default: false, brief: 'Include the data of the built-in driver (in FILE.data)' },
      since: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'FILE',
        brief: 'An earlier backup with data: what has not changed is linked',
      },
    },
    aliases: { n: 'namespace' },
    positional: { kind: 'tuple', parameters: [{ parse: String, placeholder: 'FILE', brief: 'File to write' }] },
  },
  async func(flags, file) {
    const { readDataDirectory, readServer, writeBackup } = await import('../../installation/backup.ts')
    const directory = resolve(flags.dataDir ?? defaultDataDirectory(this.process.env))
    const at = new Date().toISOString()
    using progress = startProgress(this)
    progress.say(`writing ${file}`)
    using interrupts = catchInterrupts()
    const finish = async (whole: Backup, from: string) => {
      const onProgress = (text: string) => progress.say(text)
      const images = await dataFor({ flags, directory, file: resolve(file), onProgress }, whole, interrupts)
      if (interrupts.signal.aborted) throw interrupts.error('nothing was written')
      writeBackup(resolve(file), { ...whole, ...(images && { images }) })
      const data = images ? `, ${images.length} images in ${file}.data` : ''
      this.print(`${file}: ${whole.objects.length} objects${data} of ${from}`)
      const lacking = images ? volumesWithoutData(whole.objects, new Set(images.map(({ id }) => id))) : []
      if (lacking.length > 0) this.note(`the backup does not hold the data of ${lacking.length} volumes:`)
      for (const line of lacking) this.note(`  ${line}`)
    }
    if (flags.kubeconfig === undefined && lockHolder(directory) === undefined)
      return finish(await readDataDirectory(directory, at), `${directory} (server stopped)`)
    const local = flags.kubeconfig === undefined
    using connection = connect(this, local ? { ...flags, kubeconfig: `${directory}/kubeconfig` } : flags)
    const whole = await readServer(connection.client, local ? directory : undefined, at)
    await finish(whole, `${connection.url} (server running)`)
  },
})

interface DataRequest {
  readonly flags: BackupFlags
  readonly directory: string
  readonly file: string
  readonly onProgress: (text: string) => void
}

/** After the objects: every volume they name must be among the images. */
async function dataFor(
  { flags, directory, file, onProgress }: DataRequest,
  whole: Backup,
  interrupts: Interrupts,
): Promise<readonly SavedImage[] | undefined> {
  if (!flags.withData) {
    if (flags.since !== undefined) throw new UsageError('--since is about data', 'add --with-data')
    return undefined
  }
  if (flags.kubeconfig !== undefined)
    throw new UsageError('data can only be copied on its own machine', 'leave --kubeconfig out, or --with-data')
  if (process.getuid?.() !== 0)
    throw new UsageError('only root can read the images of volumes', 'sudo hawser backup FILE --with-data')
  const { dataDirectoryOf, saveVolumeData } = await import('../../installation/volume-data.ts')
  const { readBackup } = await import('../../installation/backup.ts')
  const before = flags.since === undefined ? undefined : resolve(flags.since)
  const since = before === undefined ? undefined : { file: before, images: readBackup(before).images ?? [] }
  if (existsSync(file)) throw new UsageError(`${file} exists already`, 'choose another name')
  const { signal } = interrupts
  const saving = saveVolumeData({ directory, file, onProgress, signal, ...(since && { since }) })
  const images = await saving.catch((error: unknown) => {
    throw signal.aborted
      ? interrupts.error(`nothing was written; the copy in ${dataDirectoryOf(file)} was removed`)
      : error
  })
  const missing = missingImage(whole, images, directory)
  if (missing === undefined) return images
  rmSync(dataDirectoryOf(file), { recursive: true, force: true })
  throw new UsageError(`volume ${missing} has no image in ${directory}/volumes`, 'was it deleted meanwhile? try again')
}

/** A volume of the built-in driver whose data is not among the images, though its node's images lie here. */
function missingImage(whole: Backup, images: readonly SavedImage[], directory: string): string | undefined {
  const here = new Set(namesIn(join(directory, 'volumes', 'nodes')))
  const saved = new Set(images.map(({ id }) => id))
  for (const object of whole.objects) {
    const { kind, spec } = object as { kind?: string; spec?: PersistentVolume['spec'] }
    if (kind !== 'PersistentVolume' || spec?.csi?.driver !== builtInDriver) continue
    const nodes = nodesOf({ spec })
    const isHere = nodes.length === 0 || nodes.some((name) => here.has(name))
    if (isHere && !saved.has(spec.csi.volumeHandle)) return object.metadata.name
  }
  return undefined
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}

export const restore = buildCommand<Flags, [string], Context>({
  docs: {
    brief: 'Create a data directory from a backup',
    fullDescription: [
      'Restores only into a directory that is empty or does not exist. Then start the server with it.',
      'Agents accept the restored store as it is: they delete pods that were made after the backup.',
      '',
      'Examples:',
      '  hawser restore monday.jsonl --data-dir /srv/hawser-new',
      '  hawser up --data-dir /srv/hawser-new',
    ].join('\n'),
  },
  parameters: {
    flags: { dataDir: dataDirFlag },
    positional: { kind: 'tuple', parameters: [{ parse: String, placeholder: 'FILE', brief: 'The backup' }] },
  },
  async func(flags, file) {
    const { readBackup, restoreInto } = await import('../../installation/backup.ts')
    const { checkVolumeData, restoreVolumeData } = await import('../../installation/volume-data.ts')
    const directory = resolve(flags.dataDir ?? defaultDataDirectory(this.process.env))
    const found = readBackup(resolve(file))
    if (found.objects.length === 0) throw new UsageError(`${file} contains no objects`)
    using progress = startProgress(this)
    const images = found.images ?? []
    const say = (text: string) => progress.say(text)
    if (images.length > 0) await checkVolumeData(resolve(file), images, say)
    progress.say(`restoring ${found.objects.length} objects`)
    await restoreInto(directory, found, (partial) => restoreVolumeData(resolve(file), images, partial, say))
    const data = images.length > 0 ? `, ${images.length} images` : ''
    this.print(`${directory}: ${found.objects.length} objects${data} of ${found.at}`)
    this.note(`  next: hawser up --data-dir ${directory}`)
  },
})
