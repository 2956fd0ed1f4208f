// What is a config map? Plain configuration, up to 1 MiB, that can be made immutable.
import { forbidden, invalid, tooLong } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { ConfigMap } from '../generated/types.ts'
import { frozenText, largestData, total } from '../validation/common.ts'
import { isConfigKey } from '../validation/formats.ts'
import { byteLength, checked, sameData } from '../validation/metadata.ts'
import { age } from './age.ts'
import { defineKind } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const configMapKind = defineKind<ConfigMap>({
  kind: 'ConfigMap',
  group: '',
  plural: 'configmaps',
  scope: 'Namespaced',
  shortNames: ['cm'],
  message: 'core.ConfigMap',
  description: 'Plain configuration that pods can mount.',
  validation: { whole: validateConfigMap, change: validateConfigMapUpdate },
  access: { nodes: { may: 'usedByPods', as: 'configMaps' } },
  table: {
    columns: [nameColumn, column('Data', 'The number of entries, text and binary.'), ageColumn],
    cells: (configMap, now) => [
      configMap.metadata.name,
      Object.keys(configMap.data ?? {}).length + Object.keys(configMap.binaryData ?? {}).length,
      age(configMap.metadata.creationTimestamp, now),
    ],
  },
})

function validateConfigMap(config: ConfigMap): readonly FieldError[] {
  const { data = {}, binaryData = {} } = config
  const sizes = [
    ...Object.values(data).map(byteLength),
    ...Object.values(binaryData).map((value) => Buffer.byteLength(value, 'base64')),
  ]
  return [
    ...Object.keys(data).flatMap((key) => [
      ...checked(`data[${key}]`, key, isConfigKey),
      ...(Object.hasOwn(binaryData, key)
        ? [invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')]
        : []),
    ]),
    ...Object.keys(binaryData).flatMap((key) => checked(`binaryData[${key}]`, key, isConfigKey)),
    // Nothing in particular is too long; Kubernetes prints no path as brackets.
    ...(total(sizes) > largestData ? [tooLong('[]', largestData)] : []),
  ]
}

function validateConfigMapUpdate(next: ConfigMap, previous: ConfigMap): readonly FieldError[] {
  if (previous.immutable !== true) return []
  return [
    ...(next.immutable === true ? [] : [forbidden('immutable', frozenText)]),
    ...(sameData(next.data, previous.data) ? [] : [forbidden('data', frozenText)]),
    ...(sameData(next.binaryData, previous.binaryData) ? [] : [forbidden('binaryData', frozenText)]),
  ]
}
