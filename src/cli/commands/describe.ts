// `hawser describe`: one object as a person reads it, with its events.
import { buildCommand } from '@stricli/core'
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { objectArgument } from '../completions.ts'
import type { ConnectFlags, Connection } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { duration, table } from '../output.ts'
import type { ResourceName } from '../resources.ts'
import { resourcesFrom } from '../resources.ts'

export const describe = buildCommand<ConnectFlags, string[], Context>({
  docs: {
    brief: 'Show objects with their events',
    fullDescription: ['Examples:', '  hawser describe pvc/data', '  hawser describe pod web'].join('\n'),
  },
  parameters: {
    flags: connectFlags,
    aliases: { n: 'namespace' },
    positional: {
      kind: 'array',
      parameter: objectArgument('Objects to describe'),
      minimum: 1,
    },
  },
  async func(flags, ...words) {
    const { kinds: whole, names } = resourcesFrom(words)
    using connection = connect(this, flags)
    const all = names.length > 0 ? names : await everyName(connection, whole)
    for (const [index, name] of all.entries()) {
      if (index > 0) this.print('')
      await describeOne(this, connection, name)
    }
  },
})

async function everyName(
  { client, namespace }: Connection,
  wanted: readonly ResourceName['kind'][],
): Promise<ResourceName[]> {
  const lists = await Promise.all(
    wanted.map(async (kind) => {
      const list = await client.list(kind, kinds[kind].namespaced ? { namespace } : {})
      return list.items.map(({ metadata }) => ({ kind, name: metadata.name ?? '' }))
    }),
  )
  return lists.flat()
}

async function describeOne(
  context: Context,
  { client, namespace }: Connection,
  { kind, name }: ResourceName,
): Promise<void> {
  const ref = { name, ...(kinds[kind].namespaced ? { namespace } : {}) }
  const object: KubeObject = await client.get(kind, ref)
  const { managedFields: _fields, ...metadata } = object.metadata
  const {
    apiVersion: _version,
    kind: _kind,
    metadata: _metadata,
    ...rest
  } = object as KubeObject & Record<string, unknown>
  const hidden = kind === 'Secret' ? { ...rest, ...sizes(rest) } : rest
  context.print(lines({ ...metadata, ...hidden }, 0).join('\n'))
  const events = await client.list('Event', { fieldSelector: `involvedObject.uid=${object.metadata.uid ?? ''}` })
  context.print(events.items.length === 0 ? 'Events: none' : 'Events:')
  const now = Date.now()
  if (events.items.length > 0) {
    context.print(
      table(
        ['  AGO', 'TYPE', 'REASON', 'FROM', 'MESSAGE'],
        events.items.map((event) => [
          `  ${duration(Math.max(0, now - Date.parse(event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '')))}`,
          event.type ?? '',
          event.reason ?? '',
          event.source?.component ?? event.reportingComponent ?? '',
          (event.message ?? '').trim(),
        ]),
      ),
    )
  }
}

/** Of a secret only the sizes are shown. */
function sizes(rest: Record<string, unknown>): Record<string, unknown> {
  const data = (rest['data'] ?? {}) as Record<string, string>
  return {
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, `${Buffer.from(value, 'base64').byteLength} bytes`]),
    ),
  }
}

/** `Name: value` lines; what is nested is indented; empty things are left out. */
function lines(value: Readonly<Record<string, unknown>>, depth: number): string[] {
  const indent = '  '.repeat(depth)
  return Object.entries(value).flatMap(([name, item]) => {
    const title = `${indent}${depth === 0 ? name.slice(0, 1).toUpperCase() + name.slice(1) : name}:`
    if (item === undefined || item === null) return []
    if (Array.isArray(item)) {
      return item.every((entry) => typeof entry !== 'object')
        ? [`${title} ${item.join(', ')}`]
        : [
            title,
            ...item.flatMap((entry) => [
              '-'.padStart(indent.length + 3),
              ...lines(entry as Record<string, unknown>, depth + 2),
            ]),
          ]
    }
    if (typeof item !== 'object') return [`${title} ${String(item)}`]
    const inner = lines(item as Record<string, unknown>, depth + 1)
    return inner.length === 0 ? [] : [title, ...inner]
  })
}
