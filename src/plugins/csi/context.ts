// What is a driver told about the pod it publishes for? Pod information and service account tokens, when its CSIDriver
// asks for them (CSI-36, CSI-37). Always a copy: the volume's own attributes are shared objects (WART-8).
import type { CSIDriver, Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Strings } from '../../csi/values.ts'
import { passing, podIdentity } from './source.ts'

export function podInformation(pod: Pod, ephemeral: boolean): Strings {
  const { name, namespace, uid } = podIdentity(pod)
  return {
    'csi.storage.k8s.io/pod.name': name,
    'csi.storage.k8s.io/pod.namespace': namespace,
    'csi.storage.k8s.io/pod.uid': uid,
    'csi.storage.k8s.io/serviceAccount.name': serviceAccountOf(pod),
    'csi.storage.k8s.io/ephemeral': String(ephemeral),
  }
}

const tokensKey = 'csi.storage.k8s.io/serviceAccount.tokens'

/** The tokens as one entry, and whether it belongs among the secrets. */
export async function serviceAccountTokens(
  client: Client,
  driver: CSIDriver | undefined,
  pod: Pod,
  signal: AbortSignal,
): Promise<{ readonly context: Strings; readonly secrets: Strings }> {
  const wanted = driver?.spec?.tokenRequests ?? []
  if (wanted.length === 0) return { context: {}, secrets: {} }
  const { name, namespace, uid } = podIdentity(pod)
  const entries = await Promise.all(
    wanted.map(async ({ audience, expirationSeconds }) => {
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          audiences: audience === '' ? [] : [audience],
          ...(expirationSeconds !== undefined && { expirationSeconds }),
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
        },
      }
      const account = { namespace, name: serviceAccountOf(pod) }
      const answer = await passing('TokenUnavailable', () =>
        client.post('ServiceAccount', account, 'token', body, signal),
      )
      const status = (answer as { status?: { token?: string; expirationTimestamp?: string } }).status
      return [audience, { token: status?.token ?? '', expirationTimestamp: status?.expirationTimestamp ?? '' }] as const
    }),
  )
  const tokens = { [tokensKey]: JSON.stringify(Object.fromEntries(entries)) }
  return driver?.spec?.serviceAccountTokenInSecrets === true
    ? { context: {}, secrets: tokens }
    : { context: tokens, secrets: {} }
}

function serviceAccountOf(pod: Pod): string {
  return pod.spec?.serviceAccountName || 'default'
}
