// What does a node write down of those who ask it directly? Every stream into a pod, and every refusal; never a command or a
// query: they may hold secrets.
import type { AuditRecord } from '../../telemetry/audit.ts'
import type { NodeRequest } from '../../streams/node-server.ts'
import { parsePath } from '../../streams/node-server.ts'

type Asked = Pick<NodeRequest, 'method' | 'path'>

const streams: Readonly<Record<string, string>> = { exec: 'exec', attach: 'attach', portForward: 'portforward' }

export function isStream({ path }: Pick<NodeRequest, 'path'>): boolean {
  // As the server reads it, not as it is written: `%65xec` is exec too.
  return Object.hasOwn(streams, parsePath(path).words[0] ?? '')
}

export function isAudited(request: Pick<NodeRequest, 'path'>, code: number): boolean {
  return isStream(request) || code === 401 || code === 403
}

export function nodeAuditRecord(
  request: Asked,
  who: { readonly user: string; readonly source: string | undefined; readonly node: string },
  { code, ms }: { readonly code: number; readonly ms: number },
): AuditRecord {
  const [first = '', namespace, name] = parsePath(request.path).words
  const base = {
    user: who.user,
    ...(who.source === undefined ? {} : { source: who.source }),
    node: who.node,
    verb: request.method.toLowerCase(),
    code,
    ms: Math.round(ms),
  }
  const subresource = isStream(request) ? streams[first] : undefined
  if (subresource === undefined)
    return { ...base, resource: 'nodes', name: who.node, path: request.path.split('?')[0] ?? '' }
  return {
    ...base,
    resource: 'pods',
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    subresource,
  }
}
