// `hawser why`: what has been done, what blocks, since when, in whose words, and what would help.
import { buildCommand } from '@stricli/core'
import { kinds } from '../../api/kinds.ts'
import { notFound } from '../../api/status-error.ts'
import { UsageError } from '../../installation/config.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { inNamespace, isExplained } from '../hints.ts'
import { json, yaml } from '../output.ts'
import { resourcesFrom } from '../resources.ts'
import { explain } from '../../why/explain.ts'
import type { WhySubject } from '../../why/facts.ts'
import { gatherFacts } from '../../why/gather.ts'
import { printExplanation } from '../why-text.ts'

interface Flags extends ConnectFlags {
  readonly output: 'text' | 'json' | 'yaml'
}

export const why = buildCommand<Flags, string[], Context>({
  docs: {
    brief: 'Explain what an object waits for, or what was done to it',
    fullDescription: [
      'Shows each step from the object to the running pod: who does it, and how long it took. For a step that waits: the cause,',
      'since when, the last error, the next retry, and safe commands that help.',
      'Exit code: 0 nothing waits, 4 something waits, 3 no such object.',
      '',
      'Examples:',
      '  hawser why pod/first',
      '  hawser why pvc/data -n shop',
      '  hawser why pv/pvc-0b1c -o json',
      '  hawser why node/a',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      output: { kind: 'enum', values: ['text', 'json', 'yaml'], default: 'text', brief: 'Output format' },
    },
    aliases: { n: 'namespace', o: 'output' },
    positional: {
      kind: 'array',
      parameter: {
        parse: String,
        placeholder: 'TYPE/NAME',
        brief: 'A pod, pvc, pv, volumeattachment, volumesnapshot, volumeattributesclass or node',
      },
      minimum: 1,
    },
  },
  async func(flags, ...words) {
    using connection = connect(this, flags)
    const subjects = resourcesFrom(words).names.map(({ kind, name }): WhySubject => {
      if (!isExplained(kind))
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
      const now = Date.now()
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
