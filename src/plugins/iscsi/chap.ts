// With which names and passwords does a node log in to an iSCSI target? From a Secret, only if a CHAP flag asks (ISCSI-7).

import type { Pod } from '../../api/generated/types.ts'
import { secretTexts } from '../../api/secret-data.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/client.ts'
import { refused } from '../../volume/effect.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { toVolumeError } from '../shared/errors.ts'
import type { Chap } from './session.ts'
import { sourceOf } from './target.ts'

const keys = ['username', 'password', 'username_in', 'password_in'] as const

export async function chapOf(client: Client, spec: VolumeSpec, pod: Pod, signal: AbortSignal): Promise<Chap> {
  const { chapAuthDiscovery, chapAuthSession, secretRef } = sourceOf(spec)
  if (chapAuthDiscovery !== true && chapAuthSession !== true) return { discovery: {}, session: {} }
  // Only the reference in a PersistentVolume has a namespace.
  const own = (secretRef as { readonly namespace?: string } | undefined)?.namespace
  const namespace = own === undefined || own === '' ? (pod.metadata.namespace ?? '') : own
  const name = secretRef?.name ?? ''
  if (name === '') throw refused('SecretMissing', 'CHAP enabled but secret is nil', 'untried')
  const data = await fetchSecret(client, namespace, name, signal)
  const pick = (prefix: string) =>
    Object.fromEntries(
      keys.map((key) => `${prefix}.auth.${key}`).flatMap((key) => (data[key] === undefined ? [] : [[key, data[key]]])),
    )
  return {
    discovery:
      chapAuthDiscovery === true
        ? { 'discovery.sendtargets.auth.authmethod': 'CHAP', ...pick('discovery.sendtargets') }
        : {},
    session: chapAuthSession === true ? { 'node.session.auth.authmethod': 'CHAP', ...pick('node.session') } : {},
  }
}

async function fetchSecret(
  client: Client,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  try {
    return secretTexts(await client.get('Secret', { namespace, name }, signal))
  } catch (error) {
    if (isNotFound(error))
      throw refused('SecretMissing', `couldn't get secret ${namespace}/${name}: secret "${name}" not found`, 'untried')
    throw toVolumeError(error)
  }
}
