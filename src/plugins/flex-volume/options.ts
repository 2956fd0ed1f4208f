// What is a FlexVolume driver told about a volume? One JSON object of strings (FLEX-6, FLEX-7); the spec's own options win.

import type { Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { FlexParameters } from './driver-call.ts'
import { refused } from '../../volume/effect.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'

export function sourceOf(spec: VolumeSpec) {
  if (!hasSource(spec, 'flexVolume')) throw refused('WrongSource', `volume ${spec.name} is no flexVolume`, 'untried')
  return spec.source.value
}

export function optionsJson(spec: VolumeSpec, extra: Readonly<Record<string, string>> = {}): string {
  const { fsType = '', options = {} } = sourceOf(spec)
  return JSON.stringify({
    'kubernetes.io/fsType': fsType,
    'kubernetes.io/readwrite': spec.readOnly ? 'ro' : 'rw',
    'kubernetes.io/pvOrVolumeName': spec.name,
    ...extra,
    ...options,
  })
}

/** A volume whose driver reads its secrets from the arguments only says so by this option; then every process can see them. */
const secretsInArguments = 'hawser.dev/secretsInArguments'

/** Only `mount` is told about the pod, its group, and the secrets: all of it as JSON on stdin, all but the secrets as an argument. */
export async function mountParameters(
  client: Client,
  spec: VolumeSpec,
  target: string,
  about: { readonly pod: Pod; readonly fsGroup: number | undefined },
  signal: AbortSignal,
): Promise<FlexParameters> {
  const extras = mountExtras(about.pod, about.fsGroup)
  const secrets = await secretExtras(client, spec, about.pod.metadata.namespace ?? '', signal)
  const whole = optionsJson(spec, { ...extras, ...secrets })
  if (Object.keys(secrets).length === 0) return { words: [target, whole] }
  if (sourceOf(spec).options?.[secretsInArguments] === 'true') return { words: [target, whole] }
  return { words: [target, optionsJson(spec, extras)], input: whole }
}

function mountExtras(pod: Pod, fsGroup: number | undefined): Readonly<Record<string, string>> {
  const { name = '', namespace = '', uid = '' } = pod.metadata
  const group =
    fsGroup === undefined
      ? {}
      : { 'kubernetes.io/mounterArgs.FsGroup': String(fsGroup), 'kubernetes.io/fsGroup': String(fsGroup) }
  return {
    'kubernetes.io/pod.name': name,
    'kubernetes.io/pod.namespace': namespace,
    'kubernetes.io/pod.uid': uid,
    'kubernetes.io/serviceAccount.name': pod.spec.serviceAccountName ?? '',
    ...group,
  }
}

async function secretExtras(
  client: Client,
  spec: VolumeSpec,
  podNamespace: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const { secretRef, driver } = sourceOf(spec)
  if (secretRef?.name === undefined || secretRef.name === '') return {}
  // Only the reference in a PersistentVolume has a namespace.
  const own = (secretRef as { readonly namespace?: string }).namespace
  const namespace = own === undefined || own === '' ? podNamespace : own
  const secret = await client.get('Secret', { namespace, name: secretRef.name }, signal)
  if (secret.type !== driver) throw refused('SecretType', `cannot get secret of type ${driver}`, 'untried')
  // Drivers get the values in base64, as the API has them.
  return Object.fromEntries(
    Object.entries(secret.data ?? {}).map(([key, value]) => [`kubernetes.io/secret/${key}`, value]),
  )
}
