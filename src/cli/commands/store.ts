// `hawser store`: where the objects lie. Move them between a data directory and etcd, and look whether they are sound.
import { resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../installation/config.ts'
import type { StoreReport } from '../../installation/store-check.ts'
import type { StorePlace } from '../../main/move-store.ts'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import type { EtcdFlags } from '../etcd-flags.ts'
import { etcdAccessFlags, etcdAt } from '../etcd-flags.ts'
import { exitCodes } from '../exit-codes.ts'
import { json, table } from '../output.ts'
import { buildRoutes } from '../routes.ts'
import { startProgress } from '../wait.ts'

type AccessFlags = Omit<EtcdFlags, 'etcdServers' | 'etcdAdopt'>

interface MigrateFlags extends AccessFlags {
  readonly from: string
  readonly to: string
}

const place = (brief: string) => ({ kind: 'parsed', parse: String, placeholder: 'PLACE', brief }) as const

const migrate = buildCommand<MigrateFlags, [], Context>({
  docs: {
    brief: 'Move all objects from a data directory to etcd, or back',
    fullDescription: [
      'Stop the server first. Copies every object, reads all of them back, and compares count and digest. Only then the old place is',
      'closed and the new one opened; the old objects are kept, but no server starts on them. What was interrupted goes on when the',
      'same command is given again. A target that holds anything else is refused. Volumes stay in the data directory; etcd gets a copy of the keys.',
      '',
      'PLACE is sqlite:DIR (a data directory) or etcd:URL,URL (the members of etcd).',
      '',
      'Examples:',
      '  hawser store migrate --from sqlite:/var/lib/hawser --to etcd:http://127.0.0.1:2379',
      '  hawser up --store etcd --etcd-servers http://127.0.0.1:2379',
      '  hawser store migrate --from etcd:http://127.0.0.1:2379 --to sqlite:/var/lib/hawser',
      '  hawser store migrate --from sqlite:/srv/hawser --to etcd:https://10.0.0.1:2379 --etcd-cafile ca.crt',
    ].join('\n'),
  },
  parameters: {
    flags: {
      from: place('Where the objects are'),
      to: place('Where they shall be'),
      ...etcdAccessFlags,
    },
  },
  async func({ from, to, ...access }) {
    const [source, target] = [placeFrom(from, access), placeFrom(to, access)]
    const { moveStore } = await import('../../main/move-store.ts')
    using progress = startProgress(this)
    const log = createPinoLog({ level: 'warn' })
    const moved = await moveStore(source, target, { log, onProgress: (text) => progress.say(text) })
    this.print(`${moved.count} objects moved from ${from} to ${to}, read back and compared (sha256 ${moved.digest})`)
    if (moved.kept !== undefined) this.note(`  the objects of before are kept in ${moved.kept}`)
    this.note(`  next: ${startCommand(source, target)}`)
  },
})

interface CheckFlags extends AccessFlags {
  readonly output: 'table' | 'json'
}

const check = buildCommand<CheckFlags, [string?], Context>({
  docs: {
    brief: 'Check every object, and whether kube-apiserver would accept it',
    fullDescription: [
      'Reads all objects and says for each kind how many there are and who serves them if kube-apiserver goes on with this etcd.',
      'Names every object that is not sound (exit code 4). Two stores with the same count and digest hold the same objects.',
      'The server of a data directory must be stopped; etcd is read beside a server that runs. Nothing is changed.',
      '',
      'Examples:',
      '  hawser store check                              # the data directory of hawser up',
      '  hawser store check sqlite:/srv/hawser',
      '  hawser store check etcd:http://127.0.0.1:2379 -o json',
    ].join('\n'),
  },
  parameters: {
    flags: {
      output: { kind: 'enum', values: ['table', 'json'], default: 'table', brief: 'Output format' },
      ...etcdAccessFlags,
    },
    aliases: { o: 'output' },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: String,
          optional: true,
          placeholder: 'PLACE',
          brief: 'sqlite:DIR or etcd:URL,URL (default: sqlite:DATADIR)',
        },
      ],
    },
  },
  async func({ output, ...access }, where) {
    const { checkStoreAt } = await import('../../main/check-store.ts')
    const report = await checkStoreAt(placeFrom(where ?? `sqlite:${defaultDataDirectory(this.process.env)}`, access))
    this.print(output === 'json' ? json(report) : reportText(report))
    if (report.problems.length > 0) this.fail(exitCodes.waiting)
  },
})

export const store = buildRoutes({
  routes: { migrate, check },
  docs: {
    brief: 'Move the objects to etcd and back, and check them',
    fullDescription: [
      'Examples:',
      '  hawser store check',
      '  hawser store migrate --from sqlite:DIR --to etcd:URL',
    ].join('\n'),
  },
})

function placeFrom(text: string, access: AccessFlags): StorePlace {
  const [, kind, rest = ''] = /^(sqlite|etcd):(.+)$/.exec(text) ?? []
  if (kind === 'sqlite') return { kind, directory: resolve(rest) }
  if (kind === 'etcd') return { kind, etcd: etcdAt(rest, { ...access, etcdAdopt: false }, 'etcd:') }
  throw new UsageError(
    `a place is sqlite:DIR or etcd:URL, not "${text}"`,
    'sqlite:/var/lib/hawser, etcd:http://127.0.0.1:2379',
  )
}

function startCommand(source: StorePlace, target: StorePlace): string {
  if (target.kind === 'sqlite') return `hawser up --data-dir ${target.directory}`
  const directory = source.kind === 'sqlite' ? source.directory : ''
  return `hawser up --data-dir ${directory} --store etcd --etcd-servers ${target.etcd.servers.join(',')}`
}

function reportText(report: StoreReport): string {
  const rows = report.kinds.map(({ resource, count, successor }) => [resource, String(count), successor])
  const problems = report.problems.map(({ object, problem }) => `${object}: ${problem}`)
  return [
    table(['RESOURCE', 'COUNT', 'SERVED BY'], rows),
    '',
    ...problems,
    ...(report.foreign > 0
      ? [`${report.foreign} keys are of other programs, or of kinds that Hawser does not serve`]
      : []),
    `${report.count} objects, ${problems.length} with problems, sha256 ${report.digest}`,
  ].join('\n')
}
