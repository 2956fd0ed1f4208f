// What does the server fill in in the spec of a claim, on its own or as a template inside a pod?
// A volume mode, and both names of its data source.
import type { PersistentVolumeClaimSpec } from '../types.ts'

export function defaultClaimSpec(spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  return { volumeMode: 'Filesystem', resources: {}, ...twoDataSources(spec) }
}

/** The old and the new way to name a data source are kept equal, unless the source is in another namespace. */
function twoDataSources(given: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  const spec = withoutOddSource(given)
  const { dataSource, dataSourceRef } = spec
  if (dataSource !== undefined && dataSourceRef === undefined) return { ...spec, dataSourceRef: dataSource }
  if (dataSource !== undefined || dataSourceRef === undefined || dataSourceRef.namespace) return spec
  const { apiGroup, kind, name } = dataSourceRef
  return { ...spec, dataSource: apiGroup === undefined ? { kind, name } : { apiGroup, kind, name } }
}

/** Alone, the old name is for claims and snapshots: anything else there is as if nothing had been said. */
function withoutOddSource(spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  const { dataSource, ...rest } = spec
  if (dataSource === undefined || spec.dataSourceRef !== undefined) return spec
  const { apiGroup = '', kind } = dataSource
  const usual =
    (apiGroup === '' && kind === 'PersistentVolumeClaim') ||
    (apiGroup === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot')
  return usual ? spec : rest
}
