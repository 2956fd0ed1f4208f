// Where do service account tokens come from? From TokenRequest, bound to the pod, and kept until most of their life is over.
// Without this cache every refresh of a volume would request a new token and write it.

import type { PodUid } from '../../api/names.ts'
import type { Pod, ServiceAccountTokenProjection, TokenRequest } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { isWithin } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { refused } from '../../volume/effect.ts'

export interface Tokens {
  tokenFor(pod: Pod, projection: ServiceAccountTokenProjection, signal: AbortSignal): Promise<string>
  /** The pod is gone: its tokens are no longer valid. */
  forget(pod: PodUid): void
}

interface Kept {
  readonly token: string
  readonly askedAt: number
  readonly freshUntil: number
  readonly validUntil: number
}

const oneDayMs = 86_400_000
const defaultSeconds = 3600

export function createTokens({ client, clock }: { readonly client: Client; readonly clock: Clock }): Tokens {
  const kept = new Map<string, Map<string, Kept>>()
  return {
    async tokenFor(pod, projection, signal) {
      const uid = pod.metadata.uid ?? ''
      const key = JSON.stringify([
        projection.audience ?? '',
        projection.expirationSeconds ?? defaultSeconds,
        accountOf(pod),
      ])
      const present = kept.get(uid)?.get(key)
      if (present !== undefined && isWithin(clock.now(), present.askedAt, present.freshUntil)) return present.token
      try {
        const fresh = await request(client, clock, pod, projection, signal)
        const ofPod = kept.get(uid) ?? new Map<string, Kept>()
        kept.set(uid, ofPod.set(key, fresh))
        return fresh.token
      } catch (error) {
        // A token that is still valid is used while the server cannot issue a new one.
        if (present !== undefined && clock.now() < present.validUntil) return present.token
        throw refused('TokenUnavailable', `failed to fetch token: ${errorText(error)}`, 'untried')
      }
    },
    forget: (pod) => void kept.delete(pod),
  }
}

async function request(
  client: Client,
  clock: Clock,
  pod: Pod,
  projection: ServiceAccountTokenProjection,
  signal: AbortSignal,
): Promise<Kept> {
  const { name = '', namespace = '', uid = '' } = pod.metadata
  const expirationSeconds = projection.expirationSeconds ?? defaultSeconds
  const body: TokenRequest = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {
      audiences: projection.audience === undefined || projection.audience === '' ? [] : [projection.audience],
      expirationSeconds,
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
    },
  }
  const asked = clock.now()
  // The server answers a TokenRequest with a TokenRequest whose status holds the token.
  const answer = (await client.post(
    'ServiceAccount',
    { namespace, name: accountOf(pod) },
    'token',
    body,
    signal,
  )) as TokenRequest
  const token = answer.status?.token
  if (token === undefined || token === '') throw refused('TokenUnavailable', 'the server sent no token', 'untried')
  const expiry = Date.parse(answer.status?.expirationTimestamp ?? '')
  const validUntil = Number.isNaN(expiry) ? asked + expirationSeconds * 1000 : expiry
  const fresh = Math.min((validUntil - asked) * 0.8, oneDayMs)
  return { token, askedAt: asked, freshUntil: asked + fresh, validUntil }
}

function accountOf(pod: Pod): string {
  const name = pod.spec.serviceAccountName
  return name === undefined || name === '' ? 'default' : name
}
