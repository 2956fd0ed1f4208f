// What may this pod use, and what did it ask for? Memory for memory volumes, huge pages for huge-page volumes.

import { bytesOfQuantity } from '../../api/quantity.ts'
import type { Container, Pod } from '../../api/generated/types.ts'

/** The memory limit of the pod's control group: only there if every container has one (or the pod as a whole). */
export function podMemoryLimit(pod: Pod): bigint | undefined {
  const whole = pod.spec.resources?.limits?.['memory']
  if (whole !== undefined) return bytesOfQuantity(whole)
  const sidecars = (pod.spec.initContainers ?? []).filter(isSidecar)
  const running = limits([...pod.spec.containers, ...sidecars])
  const starting = limits((pod.spec.initContainers ?? []).filter((container) => !isSidecar(container)))
  if (running === undefined || starting === undefined) return undefined
  const overhead = pod.spec.overhead?.['memory']
  const sum = running.reduce((total, limit) => total + limit, 0n)
  const largest = starting.reduce((most, limit) => (limit > most ? limit : most), sum)
  return largest + (overhead === undefined ? 0n : bytesOfQuantity(overhead))
}

/** Sizes of huge pages that the pod's containers request: "2Mi", "1Gi". */
export function requestedPageSizes(pod: Pod): ReadonlySet<string> {
  const sizes = new Set<string>()
  const all = [
    pod.spec.resources,
    ...[...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(({ resources }) => resources),
  ]
  for (const resources of all) {
    for (const name of Object.keys({ ...resources?.requests, ...resources?.limits })) {
      if (name.startsWith('hugepages-')) sizes.add(name.slice('hugepages-'.length))
    }
  }
  return sizes
}

function isSidecar(container: Container): boolean {
  return container.restartPolicy === 'Always'
}

function limits(containers: readonly Container[]): readonly bigint[] | undefined {
  const result: bigint[] = []
  for (const { resources } of containers) {
    const limit = resources?.limits?.['memory']
    if (limit === undefined || bytesOfQuantity(limit) === 0n) return undefined
    result.push(bytesOfQuantity(limit))
  }
  return result
}
