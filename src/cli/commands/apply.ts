// `hawser apply`: makes objects be as the files say (server-side apply), for machines without kubectl.
import { isDeepStrictEqual } from 'node:util'
import { buildCommand } from '@stricli/core'
import { getIfExists } from '../../client/get-if-exists.ts'
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { ReadError, readPartial } from '../../api/schema/check.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../../installation/config.ts'
import type { Manifest } from '../manifests.ts'
import { readManifests } from '../manifests.ts'
import { timeoutFlag } from '../wait.ts'
import type { AppliedObject } from '../wait-applied.ts'
import { waitForApplied } from '../wait-applied.ts'

interface Flags extends ConnectFlags {
  readonly file: readonly string[]
  readonly force: boolean
  readonly dryRun: boolean
  readonly wait: boolean
  readonly timeout: number
}

export const apply = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Create or change objects from files',
    fullDescription: [
      'Server-side apply under the field manager "hawser". With --wait, the command ends when the claims are bound and the pods run.',
      'It prints the cause of a delay as soon as it is known, and ends early if waiting cannot help.',
      '',
      'Examples:',
      '  hawser apply -f claim.yaml',
      '  hawser apply -f manifests/ --dry-run',
      '  hawser apply -f app.yaml --wait',
      '  echo \'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}\' | hawser apply -f -',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      file: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        placeholder: 'FILE',
        brief: 'A file, a directory, or - for standard input',
      },
      force: { kind: 'boolean', default: false, brief: 'Take over fields from other managers' },
      dryRun: { kind: 'boolean', default: false, brief: 'Let the server validate, but store nothing' },
      wait: { kind: 'boolean', default: false, brief: 'Wait until claims are bound and pods run' },
      timeout: timeoutFlag,
    },
    aliases: { f: 'file', n: 'namespace' },
  },
  async func(flags) {
    const manifests = readManifests(flags.file)
    manifests.forEach(refuseWithAdvice)
    using connection = connect(this, flags)
    const applied: AppliedObject[] = []
    for (const { kind, object } of manifests) {
      const namespace = object.metadata?.namespace ?? connection.namespace
      const ref = { name: object.metadata?.name ?? '', ...(kinds[kind].namespaced ? { namespace } : {}) }
      const before = await getIfExists(connection.client, kind, ref)
      const options = { fieldManager: 'hawser', force: flags.force, dryRun: flags.dryRun }
      const after = await connection.client.patch(kind, ref, { type: 'apply', body: object }, options)
      const verb = !before ? 'created' : isDeepStrictEqual(wished(before), wished(after)) ? 'unchanged' : 'configured'
      this.print(`${kinds[kind].singular}/${ref.name} ${verb}${flags.dryRun ? ' (dry run)' : ''}`)
      applied.push({ kind, ref, object: after })
    }
    if (flags.wait && !flags.dryRun) await waitForApplied(this, connection.client, applied, flags.timeout * 1_000)
  },
})

/** The server refuses it in Kubernetes' words, which name no field. */
function refuseWithAdvice({ kind, object, from }: Manifest): void {
  try {
    readPartial(kind, object)
  } catch (error) {
    if (!(error instanceof ReadError) || error.advice === undefined) return
    throw new UsageError(`${from}: ${kinds[kind].singular}/${object.metadata?.name ?? ''}: ${error.advice}`)
  }
}

/** The object without what others write on their own; a dry run answers with the stored version, so that says nothing. */
function wished(object: KubeObject): unknown {
  const { resourceVersion: _version, managedFields: _managers, ...metadata } = object.metadata
  const { status: _status, ...rest } = object as KubeObject & { status?: unknown }
  return { ...rest, metadata }
}
