// What is a secret? Confidential data, up to 1 MiB; some types promise certain keys.
import { forbidden, invalid, required, tooLong } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { Secret } from '../generated/types.ts'
import { frozenText, largestData, total } from '../validation/common.ts'
import { isConfigKey } from '../validation/formats.ts'
import { checked, sameData, unchanged } from '../validation/metadata.ts'
import { age } from './age.ts'
import { defineKind } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const secretKind = defineKind<Secret>({
  kind: 'Secret',
  group: '',
  plural: 'secrets',
  scope: 'Namespaced',
  message: 'core.Secret',
  description: 'Confidential data that pods can mount.',
  selectableFields: { type: {} },
  defaults: defaultSecret,
  validation: { whole: validateSecret, change: validateSecretUpdate },
  access: {
    confidential: true,
    controllers: { verbs: ['get'], only: 'namedSecrets' },
    nodes: { may: 'usedByPods', as: 'secrets' },
  },
  table: {
    columns: [
      nameColumn,
      column('Type', 'What the secret is for.'),
      column('Data', 'The number of entries.'),
      ageColumn,
    ],
    cells: (secret, now) => [
      secret.metadata.name,
      secret.type ?? '',
      Object.keys(secret.data ?? {}).length,
      age(secret.metadata.creationTimestamp, now),
    ],
  },
})

/** `stringData` is only ever written: it moves into `data`, and wins there. */
function defaultSecret(secret: Secret): Secret {
  const { stringData, ...rest } = secret
  const data = {
    ...secret.data,
    ...Object.fromEntries(
      Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    ),
  }
  const kept = Object.keys(data).length > 0 ? { ...rest, data } : rest
  return { ...kept, type: secret.type || 'Opaque' }
}

/** Types that promise certain keys. */
const keysOfType: ReadonlyMap<string, readonly string[]> = new Map([
  ['kubernetes.io/dockercfg', ['.dockercfg']],
  ['kubernetes.io/dockerconfigjson', ['.dockerconfigjson']],
  ['kubernetes.io/ssh-auth', ['ssh-privatekey']],
  ['kubernetes.io/tls', ['tls.crt', 'tls.key']],
])

const dockerKeys = ['.dockercfg', '.dockerconfigjson']

/** The content is JSON; what it says is nobody's business. */
function validateDockerConfig(value: string | undefined, type: string, key: string): readonly FieldError[] {
  if (value === undefined || type !== `kubernetes.io/${key.slice(1)}`) return []
  try {
    const content: unknown = JSON.parse(Buffer.from(value, 'base64').toString())
    if (typeof content === 'object' && !Array.isArray(content)) return []
  } catch {
    // Told below.
  }
  return [invalid(`data[${key}]`, '<secret contents redacted>', 'must be a JSON object')]
}

/** One of them is enough. */
const loginKeys = ['username', 'password']

function validateSecret(secret: Secret): readonly FieldError[] {
  const data = secret.data ?? {}
  const type = secret.type ?? ''
  const sizes = Object.values(data).map((value) => Buffer.byteLength(value, 'base64'))
  const account = 'kubernetes.io/service-account.name'
  return [
    ...Object.keys(data).flatMap((key) => checked(`data[${key}]`, key, isConfigKey)),
    ...(total(sizes) > largestData ? [tooLong('data', largestData)] : []),
    ...(keysOfType.get(type) ?? []).flatMap((key) => (Object.hasOwn(data, key) ? [] : [required(`data[${key}]`)])),
    ...dockerKeys.flatMap((key) => validateDockerConfig(data[key], type, key)),
    ...(type === 'kubernetes.io/basic-auth' && !loginKeys.some((key) => Object.hasOwn(data, key))
      ? loginKeys.map((key) => required(`data[${key}]`))
      : []),
    ...(type === 'kubernetes.io/service-account-token' && !secret.metadata.annotations?.[account]
      ? [required(`metadata.annotations[${account}]`)]
      : []),
  ]
}

function validateSecretUpdate(next: Secret, previous: Secret): readonly FieldError[] {
  const errors = unchanged(next.type, previous.type, 'type')
  if (previous.immutable !== true) return errors
  return [
    ...errors,
    ...(next.immutable === true ? [] : [forbidden('immutable', frozenText)]),
    ...(sameData(next.data, previous.data) ? [] : [forbidden('data', frozenText)]),
  ]
}
