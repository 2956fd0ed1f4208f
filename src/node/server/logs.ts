// What did a container print? Asked with a kubelet's parameters; the files themselves are read by whoever keeps them.
import type { PodUid } from '../../api/names.ts'
import type { NodeResponse } from '../../streams/node-server.ts'
import { textAnswer } from '../../streams/upgrade.ts'
import type { PodView } from '../pods/pods.ts'

interface LogsRequest {
  readonly namespace: string
  readonly pod: string
  readonly uid: PodUid
  readonly container: string
  /** The attempt before the newest one. */
  readonly previous: boolean
  readonly tailLines?: number
  readonly limitBytes?: number
  /** Goes on until the container has ended. */
  readonly follow?: { ended(): boolean }
}

/** Undefined when it has not written anything yet, or never was. */
export type ContainerLogs = (
  request: LogsRequest,
  signal: AbortSignal,
) => Promise<AsyncIterable<Uint8Array> | undefined>

export async function logsAnswer(
  logs: ContainerLogs,
  look: () => PodView | undefined,
  { pod, uid }: PodView,
  container: string,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<NodeResponse> {
  const number = (name: string) => (/^\d+$/.test(query.get(name) ?? '') ? Number(query.get(name)) : undefined)
  const [tailLines, limitBytes] = [number('tailLines'), number('limitBytes')]
  const previous = query.get('previous') === 'true'
  const ended = () => look()?.containers.get(container)?.record?.exit !== undefined || look() === undefined
  const request: LogsRequest = {
    namespace: pod.metadata.namespace ?? 'default',
    pod: pod.metadata.name,
    uid,
    container,
    previous,
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(query.get('follow') === 'true' ? { follow: { ended } } : {}),
  }
  const found = await logs(request, signal)
  if (found) return { status: 200, headers: { 'content-type': 'text/plain' }, body: found }
  if (!previous) return textAnswer(200, '', 'text/plain')
  return textAnswer(400, `previous terminated container "${container}" in pod "${pod.metadata.name}" not found`)
}
