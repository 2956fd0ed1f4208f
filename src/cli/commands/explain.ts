// `hawser explain`: prints the page of a cause that `hawser why` has named; without a cause, the list of them.
import { readFileSync } from 'node:fs'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../installation/config.ts'
import { nearWords } from '../../telemetry/near-words.ts'
import type { Cause } from '../../why/causes.ts'
import { causes, pageName } from '../../why/causes.ts'
import type { Context } from '../context.ts'
import { table } from '../output.ts'

export const explainCause = buildCommand<object, [cause?: string], Context>({
  docs: {
    brief: 'Print the page about a cause that why named',
    fullDescription: [
      'What the cause means, what ends it, and commands that help. Needs no server. Without a cause: the list of all.',
      '',
      'Examples:',
      '  hawser explain',
      '  hawser explain classMissing',
      '  hawser explain driver-unavailable',
    ].join('\n'),
  },
  parameters: {
    flags: {},
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: String,
          placeholder: 'CAUSE',
          brief: 'A cause, as why names it or as its page is called',
          optional: true,
        },
      ],
    },
  },
  func(_flags, word) {
    const names = Object.keys(causes) as Cause[]
    if (word === undefined)
      return this.print(
        table(
          ['CAUSE', 'WHAT'],
          names.map((name) => [name, causes[name].title]),
        ),
      )
    const cause = names.find((name) => name === word || pageName(name) === word.replace(/\.md$/, ''))
    if (cause === undefined) throw unknown(word, names)
    this.print(pageOf(cause))
  },
})

function unknown(word: string, names: readonly Cause[]): UsageError {
  const near = [...new Set([...nearWords(word, names), ...names.filter((name) => isPart(word, name))])].slice(0, 3)
  const meant = near.length > 0 ? `; did you mean ${near.join(' or ')}?` : ''
  return new UsageError(
    `"${word}" is no cause of why${meant}`,
    near[0] ? `hawser explain ${near[0]}` : 'hawser explain',
  )
}

const isPart = (word: string, name: string) => name.toLowerCase().includes(word.toLowerCase().replaceAll('-', ''))

/** Without the mark of the generator and the link to the other pages. */
function pageOf(cause: Cause): string {
  const page = new URL(`../../../docs/symptoms/${pageName(cause)}.md`, import.meta.url)
  return readFileSync(page, 'utf8')
    .replaceAll(/^<!--.*-->\n/gm, '')
    .replace(/\n\[All symptoms\].*\n?$/, '')
    .trim()
}
