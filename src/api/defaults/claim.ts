// What does the server fill in in the spec of a claim, on its own or as a template inside a pod?
// A volume mode, and both names of its data source.
import type { PersistentVolumeClaimSpec } from '../generated/types.ts'
import { filled } from './absent.ts'

export function defaultClaimSpec(spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  const whole = { volumeMode: 'Filesystem', resources: {}, ...twoDataSources(spec) } as const
  const { dataSource, dataSourceRef } = whole
  if (dataSource === undefined && dataSourceRef === undefined) return whole
  return {
    ...whole,
    ...(dataSource && { dataSource: filled(dataSource, ['apiGroup']) }),
    ...(dataSourceRef && { dataSourceRef: filled(dataSourceRef, ['apiGroup']) }),
  }
}

/** The old and the new way to name a data source are kept equal, unless the source is in another namespace. */
function twoDataSources(given: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  const spec = withoutOddSource(given)
  const { dataSource, dataSourceRef } = spec
  if (dataSource !== undefined && dataSourceRef === undefined) return { ...spec, dataSourceRef: dataSource }
  if (dataSource !== undefined || dataSourceRef === undefined || dataSourceRef.namespace) return spec
  const { apiGroup, kind, name } = dataSourceRef
  return { ...spec, dataSource: apiGroup ? { apiGroup, kind, name } : { kind, name } }
}

/** Alone, the old name is for claims and snapshots: anything else there is as if nothing had been said. */
function withoutOddSource(spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  const { dataSource, ...rest } = spec
  if (dataSource === undefined || spec.dataSourceRef !== undefined) return spec
  const { apiGroup, kind } = dataSource
  const usual =
    (!apiGroup && kind === 'PersistentVolumeClaim') ||
    (apiGroup === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot')
  return usual ? spec : rest
}
