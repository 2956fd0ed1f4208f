// Which files does a projected volume hold? Its sources merged in order, the later wins; all failures told at once (CONF-8).

import type { VolumeProjection } from '../../api/generated/types.ts'
import type { Payload, PayloadFile } from '../../host/atomic-files.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { refused } from '../../volume/effect.ts'
import type { MountRequest } from '../../volume/plugin.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { downwardPayload } from './downward-api.ts'
import { aggregate } from './errors.ts'
import { configMapPayload, secretPayload } from './keyed-objects.ts'
import type { Reader } from './kept-objects.ts'
import type { Tokens } from './tokens.ts'

export interface ProjectionDeps extends Pick<NodePluginDeps, 'allocatable'> {
  readonly reader: Reader
  readonly tokens: Tokens
}

export async function projectedPayload(
  deps: ProjectionDeps,
  sources: readonly VolumeProjection[],
  request: MountRequest,
  defaultMode: number,
  signal: AbortSignal,
): Promise<Payload> {
  const merged = new Map<string, PayloadFile>()
  const problems: unknown[] = []
  for (const source of sources) {
    try {
      for (const [path, file] of await payloadOf(deps, source, request, defaultMode, signal)) merged.set(path, file)
    } catch (error) {
      problems.push(error)
    }
  }
  if (problems.length > 0)
    throw refused('ProjectedSources', aggregate(problems.map(errorText)), 'untried', [], problems[0])
  return merged
}

async function payloadOf(
  deps: ProjectionDeps,
  source: VolumeProjection,
  request: MountRequest,
  defaultMode: number,
  signal: AbortSignal,
): Promise<Payload> {
  const { reader } = deps
  const { pod } = request
  const namespace = pod.metadata.namespace ?? ''
  const { secret, configMap, downwardAPI, serviceAccountToken } = source
  if (secret !== undefined)
    return secretPayload(reader, { source: { ...secret, name: secret.name ?? '' }, namespace, defaultMode }, signal)
  if (configMap !== undefined)
    return configMapPayload(
      reader,
      { source: { ...configMap, name: configMap.name ?? '' }, namespace, defaultMode },
      signal,
    )
  if (downwardAPI !== undefined)
    return downwardPayload(downwardAPI.items ?? [], { pod, defaultMode, allocatable: deps.allocatable() })
  if (serviceAccountToken !== undefined) {
    const token = await deps.tokens.tokenFor(pod, serviceAccountToken, signal)
    return new Map([[serviceAccountToken.path, ownFile(new TextEncoder().encode(token), request, defaultMode)]])
  }
  // Both need API kinds that this server does not serve (CONF-10).
  if (source.clusterTrustBundle !== undefined)
    return trustBundlePayload(source.clusterTrustBundle, request, defaultMode)
  if (source.podCertificate !== undefined)
    throw refused(
      'NotSupported',
      'podCertificate sources are not supported: there is no PodCertificateRequest API here',
      'untried',
    )
  return new Map()
}

/** Tokens and certificates are readable by the pod's user only; the fsGroup pass later makes 0600 to 0640 (CONF-9, CONF-10). */
function ownFile(bytes: Uint8Array, { ownership }: MountRequest, defaultMode: number): PayloadFile {
  const { fsUser, fsGroup } = ownership
  const mode = fsUser !== undefined || fsGroup !== undefined ? 0o600 : defaultMode
  return fsUser === undefined ? { bytes, mode } : { bytes, mode, uid: fsUser }
}

/** Without the API there is no bundle; an optional one is an empty file then (CONF-10). */
function trustBundlePayload(
  source: NonNullable<VolumeProjection['clusterTrustBundle']>,
  request: MountRequest,
  defaultMode: number,
): Payload {
  if (source.optional === true) return new Map([[source.path, ownFile(new Uint8Array(0), request, defaultMode)]])
  throw refused(
    'NotSupported',
    'clusterTrustBundle sources are not supported: there is no ClusterTrustBundle API here',
    'untried',
  )
}
