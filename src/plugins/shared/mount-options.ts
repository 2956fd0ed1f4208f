// With which options is a persistent volume mounted? The annotation wins over the field; sorted, each once (PLUG-12).

import { annotations } from '../../api/annotations.ts'
import type { VolumeSpec } from '../../volume/spec.ts'

export function mountOptionsOf(spec: VolumeSpec, system: readonly string[] = []): readonly string[] {
  const { persistentVolume } = spec
  const annotated = persistentVolume?.metadata.annotations?.[annotations.mountOptions]
  const own = annotated === undefined ? (persistentVolume?.spec?.mountOptions ?? []) : annotated.split(',')
  return [...new Set([...own.filter((option) => option !== ''), ...system])].sort()
}
