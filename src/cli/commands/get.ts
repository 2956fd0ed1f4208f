// `hawser get`: lists and shows objects, for machines without kubectl.
import { buildCommand } from '@stricli/core'
import type { KindName } from '../../api/kinds.ts'
import { kinds } from '../../api/kinds.ts'
import { collectionPath, objectPath } from '../../client/rest.ts'
import { typesAndNames } from '../completions.ts'
import type { Connection } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { ConnectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import type { OutputForm } from '../output.ts'
import { json, outputFlag, table, yaml } from '../output.ts'
import { resourcesFrom } from '../resources.ts'

interface Flags extends ConnectFlags {
  readonly output: OutputForm
  readonly allNamespaces: boolean
  readonly selector?: string
  readonly fieldSelector?: string
  readonly watch: boolean
}

interface Table {
  readonly columnDefinitions?: readonly { readonly name: string; readonly priority?: number }[] | null
  readonly rows?:
    | readonly {
        readonly cells: readonly unknown[]
        readonly object?: { readonly metadata?: { readonly namespace?: string } }
      }[]
    | null
}

const asTable = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

export const get = buildCommand<Flags, string[], Context>({
  docs: {
    brief: 'List or show objects',
    fullDescription: [
      'Lists objects of one or more types, or shows single objects.',
      '',
      'Examples:',
      '  hawser get pvc',
      '  hawser get pv,pvc,pods -A',
      '  hawser get pvc/data -o yaml',
      '  hawser get pods --watch',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      output: outputFlag,
      allNamespaces: { kind: 'boolean', default: false, brief: 'All namespaces' },
      selector: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'LABELS',
        brief: 'Label selector',
      },
      fieldSelector: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'FIELDS',
        brief: 'Field selector',
      },
      watch: { kind: 'boolean', default: false, brief: 'Watch for changes' },
    },
    aliases: { o: 'output', A: 'allNamespaces', l: 'selector', w: 'watch', n: 'namespace' },
    positional: {
      kind: 'array',
      parameter: {
        parse: String,
        placeholder: 'TYPE[/NAME]',
        proposeCompletions: typesAndNames,
        brief: 'Types or objects',
      },
      minimum: 1,
    },
  },
  async func(flags, ...words) {
    const wanted = resourcesFrom(words)
    using connection = connect(this, flags)
    const paths =
      wanted.names.length > 0
        ? wanted.names.map(({ kind, name }) => ({
            kind,
            path: objectPath(kind, { name, ...scope(kind, flags, connection) }),
          }))
        : wanted.kinds.map((kind) => ({
            kind,
            path: collectionPath(kind, scope(kind, flags, connection).namespace) + query(flags),
          }))
    if (flags.output === 'table' || flags.output === 'wide') {
      for (const [index, { path }] of paths.entries()) {
        if (index > 0) this.print('')
        await printTable(this, connection, path, flags)
      }
    } else await printObjects(this, connection, paths, flags.output)
    if (flags.watch)
      await follow(
        this,
        connection,
        paths.map(({ path }) => path),
        flags,
      )
  },
})

function scope(kind: KindName, flags: Flags, { namespace }: Connection): { readonly namespace?: string } {
  return kinds[kind].namespaced && !flags.allNamespaces ? { namespace } : {}
}

function query({ selector, fieldSelector }: Flags): string {
  const pairs = Object.entries({ labelSelector: selector, fieldSelector }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  )
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : ''
}

async function printTable(context: Context, { transport }: Connection, path: string, flags: Flags): Promise<void> {
  const answer = (await transport.request(
    { method: 'GET', path, accept: asTable },
    new AbortController().signal,
  )) as Table
  const rows = answer.rows ?? []
  if (rows.length === 0) context.note('nothing found')
  else context.print(render(answer, flags))
}

function render(answer: Table, flags: Flags, headers = true): string {
  const columns = answer.columnDefinitions ?? []
  const shown = columns.flatMap((column, index) =>
    (column.priority ?? 0) === 0 || flags.output === 'wide' ? [index] : [],
  )
  const indexes = shown.length > 0 ? shown : (answer.rows?.[0]?.cells ?? []).map((_, index) => index)
  const space = (first: string) => (flags.allNamespaces ? [first] : [])
  return table(
    headers ? [...space('NAMESPACE'), ...indexes.map((index) => (columns[index]?.name ?? '').toUpperCase())] : [],
    (answer.rows ?? []).map((row) => [
      ...space(row.object?.metadata?.namespace ?? ''),
      ...indexes.map((index) => String(row.cells[index] ?? '')),
    ]),
  )
}

async function printObjects(
  context: Context,
  { transport }: Connection,
  paths: readonly { kind: KindName; path: string }[],
  form: OutputForm,
): Promise<void> {
  const signal = new AbortController().signal
  const answers = await Promise.all(paths.map(({ path }) => transport.request({ method: 'GET', path }, signal)))
  if (form === 'name') {
    answers.forEach((answer, index) => {
      const { items } = answer as { items?: readonly { metadata: { name: string } }[] }
      for (const { metadata } of items ?? [answer as { metadata: { name: string } }])
        context.print(`${kinds[paths[index]!.kind].singular}/${metadata.name}`)
    })
    return
  }
  const value =
    answers.length === 1
      ? answers[0]
      : {
          apiVersion: 'v1',
          kind: 'List',
          items: answers.flatMap((answer) => (answer as { items?: unknown[] }).items ?? [answer]),
        }
  context.print(form === 'json' ? json(value) : yaml(value))
}

async function follow(
  context: Context,
  { transport }: Connection,
  paths: readonly string[],
  flags: Flags,
): Promise<void> {
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  await Promise.all(
    paths.map(async (path) => {
      const stream = transport.stream(
        { method: 'GET', path: `${path}${path.includes('?') ? '&' : '?'}watch=true`, accept: asTable },
        stop.signal,
      )
      try {
        for await (const event of stream) context.print(render((event as { object: Table }).object, flags, false))
      } catch (error) {
        if (!stop.signal.aborted) throw error
      }
    }),
  )
}
