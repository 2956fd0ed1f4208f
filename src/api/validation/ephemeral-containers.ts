// May these containers be added to a pod that exists? They serve to look at it: nothing of the pod's own work (ports, probes,
// resources, parts of volumes) may hang on them, and none is ever changed or taken away.
import { forbidden, missing } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { EphemeralContainer, Pod, PodSpec } from '../generated/types.ts'
import { describeChanges } from './common.ts'
import { sameData } from './metadata.ts'
import { validatePod } from './pod.ts'

const fields = [
  'ports',
  'resources',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
  'resizePolicy',
] as const
const refusal = 'cannot be set for an Ephemeral Container'
const list = 'spec.ephemeralContainers'

export function validateEphemeralContainersUpdate(next: Pod, previous: Pod): readonly FieldError[] {
  const containers = next.spec.ephemeralContainers ?? []
  const byName = new Map(containers.map((each) => [each.name, each]))
  return [
    ...validatePod(next),
    ...containers.flatMap((each, index) => validateEphemeral(each, next.spec, `${list}[${index}]`)),
    ...(previous.spec.ephemeralContainers ?? []).flatMap((old) => validateKept(old, byName.get(old.name))),
  ]
}

function validateEphemeral(container: EphemeralContainer, spec: PodSpec, path: string): readonly FieldError[] {
  const { targetContainerName: target, volumeMounts = [] } = container
  const others = [...spec.containers, ...(spec.initContainers ?? [])]
  return [
    ...(target && !others.some(({ name }) => name === target) ? [missing(`${path}.targetContainerName`, target)] : []),
    ...fields.filter((name) => isSet(container[name])).map((name) => forbidden(`${path}.${name}`, refusal)),
    ...volumeMounts.flatMap((mount, index) =>
      (['subPath', 'subPathExpr'] as const)
        .filter((name) => mount[name])
        .map((name) => forbidden(`${path}.volumeMounts[${index}].${name}`, refusal)),
    ),
  ]
}

/** Empty lists and objects are what the server itself fills in. */
function isSet(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

function validateKept(old: EphemeralContainer, next: EphemeralContainer | undefined): readonly FieldError[] {
  if (!next) return [forbidden(list, `existing ephemeral containers "${old.name}" may not be removed\n`)]
  if (sameData(old, next)) return []
  const text = `existing ephemeral containers "${old.name}" may not be changed\n${describeChanges(next, old)}`
  return [forbidden(list, text)]
}
