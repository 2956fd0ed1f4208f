// `hawser backup` and `hawser restore`: every object and the keys of the data directory in one file, and back.
import { resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../installation/config.ts'
import { lockHolder } from '../../installation/data-directory.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import { startProgress } from '../wait.ts'

interface Flags {
  readonly dataDir?: string
}

const dataDirFlag = {
  kind: 'parsed',
  parse: String,
  optional: true,
  placeholder: 'DIR',
  brief: 'The data directory (default: that of hawser up)',
} as const

export const backup = buildCommand<Flags & ConnectFlags, [string], Context>({
  docs: {
    brief: 'Write every object into one file',
    fullDescription: [
      'Writes all objects and the keys of the data directory into FILE (mode 0600: it holds secrets).',
      'The backup is consistent if the server is stopped. While it runs, one kind is read after the other.',
      'Data on volumes is not included: take snapshots, or copy DIR/volumes while the server is stopped.',
      '',
      'Examples:',
      '  hawser backup /srv/backup/hawser-monday.jsonl',
      '  hawser backup monday.jsonl --data-dir /srv/hawser',
      '  hawser backup remote.jsonl --kubeconfig other.kubeconfig      # objects only, no keys',
    ].join('\n'),
  },
  parameters: {
    flags: { ...connectFlags, dataDir: dataDirFlag },
    aliases: { n: 'namespace' },
    positional: { kind: 'tuple', parameters: [{ parse: String, placeholder: 'FILE', brief: 'File to write' }] },
  },
  async func(flags, file) {
    const { readDataDirectory, readServer, writeBackup } = await import('../../installation/backup.ts')
    const directory = resolve(flags.dataDir ?? defaultDataDirectory(this.process.env))
    const at = new Date().toISOString()
    using progress = startProgress(this)
    progress.say(`writing ${file}`)
    if (flags.kubeconfig === undefined && lockHolder(directory) === undefined) {
      const whole = await readDataDirectory(directory, at)
      writeBackup(resolve(file), whole)
      return this.print(`${file}: ${whole.objects.length} objects of ${directory} (server stopped)`)
    }
    const local = flags.kubeconfig === undefined
    using connection = connect(this, local ? { ...flags, kubeconfig: `${directory}/kubeconfig` } : flags)
    const whole = await readServer(connection.client, local ? directory : undefined, at)
    writeBackup(resolve(file), whole)
    this.print(`${file}: ${whole.objects.length} objects of ${connection.url} (server running)`)
  },
})

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
    const directory = resolve(flags.dataDir ?? defaultDataDirectory(this.process.env))
    const found = readBackup(resolve(file))
    if (found.objects.length === 0) throw new UsageError(`${file} contains no objects`)
    using progress = startProgress(this)
    progress.say(`restoring ${found.objects.length} objects`)
    await restoreInto(directory, found)
    this.print(`${directory}: ${found.objects.length} objects of ${found.at}`)
    this.note(`  next: hawser up --data-dir ${directory}`)
  },
})
