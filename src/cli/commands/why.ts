// `hawser why`: what has been done, what blocks, since when, in whose words, and what would help.
import { buildCommand } from '@stricli/core'
import { kinds } from '../../api/kinds.ts'
import { notFound } from '../../api/status-error.ts'
import { UsageError } from '../../installation/config.ts'
import { objectArgument } from '../completions.ts'
import type { Connection, ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { askAbout, inNamespace } from '../hints.ts'
import { json, yaml } from '../output.ts'
import { resourcesFrom } from '../resources.ts'
import { explain } from '../../why/explain.ts'
import { isSubjectKind } from '../../why/facts.ts'
import type { WhySubject } from '../../why/facts.ts'
import { gatherFacts, gatherWaiting } from '../../why/gather.ts'
import { printExplanation, printWaiting } from '../why-text.ts'

interface Flags extends ConnectFlags {
  readonly output: 'text' | 'json' | 'yaml'
  readonly allNamespaces: boolean
}

export const why = buildCommand<Flags, string[], Context>({
  docs: {
    brief: 'Explain what an object waits for, or what was done to it',
    fullDescription: [
      'Shows each step from the object to the running pod: who does it, and how long it took. For a step that waits: the cause,',
      'since when, the last error, the next retry, and safe commands that help.',
      'Without an object: everything that waits in the namespace, worst first; with -A also volumes, attachments and nodes.',
      'Exit code: 0 nothing waits (or it will end by itself), 4 something waits, 3 no such object.',
      '',
      'Examples:',
      '  hawser why',
      '  hawser why -A',
      '  hawser why pod/first',
      '  hawser why pvc/data -n shop',
      '  hawser why pv/pvc-0b1c -o json',
      '  hawser why node/a',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      allNamespaces: { kind: 'boolean', default: false, brief: 'Everything that waits in the cluster' },
      output: { kind: 'enum', values: ['text', 'json', 'yaml'], default: 'text', brief: 'Output format' },
    },
    aliases: { n: 'namespace', o: 'output', A: 'allNamespaces' },
    positional: {
      kind: 'array',
      parameter: objectArgument('A pod, pvc, pv, volumeattachment, volumesnapshot, volumeattributesclass or node'),
      minimum: 0,
    },
  },
  async func(flags, ...words) {
    using connection = connect(this, flags)
    if (words.length === 0) return listAll(this, connection, flags)
    const subjects = resourcesFrom(words).names.map(({ kind, name }): WhySubject => {
      if (!isSubjectKind(kind))
        throw new UsageError(
          `why explains pods, claims, volumes, attachments, snapshots, attributes classes and nodes, not ${kind}`,
          'hawser why pod/NAME',
        )
      const namespace = kinds[kind].namespaced ? { namespace: connection.namespace } : {}
      return { kind, name, ...namespace }
    })
    if (subjects.length === 0)
      throw new UsageError('name the object to explain', `hawser why ${words[0]}/NAME${inNamespace(flags.namespace)}`)
    for (const [index, subject] of subjects.entries()) {
      const now = await connection.now()
      const explanation = explain(await gatherFacts(connection.client, subject, now))
      if (explanation.verdict === 'missing') throw notFound(kinds[subject.kind], subject.name)
      if (index > 0) this.print('')
      if (flags.output === 'json') this.print(json(explanation))
      else if (flags.output === 'yaml') this.print(yaml(explanation))
      else printExplanation(this, explanation, now)
      if (explanation.verdict === 'waiting') this.fail(exitCodes.waiting)
    }
  },
})

/** Everything that waits, one line each. */
async function listAll(context: Context, { client, namespace, now: askTime }: Connection, flags: Flags): Promise<void> {
  const now = await askTime()
  const scope = flags.allNamespaces ? undefined : namespace
  const found = await gatherWaiting(client, scope, now)
  const items = found.map((item) => ({ ...item, command: askAbout(item.subject.kind, item.subject) }))
  if (flags.output === 'json') context.print(json(items))
  else if (flags.output === 'yaml') context.print(yaml(items))
  else printWaiting(context, items, scope, now)
  if (found.some(({ verdict }) => verdict === 'waiting')) context.fail(exitCodes.waiting)
}
