// How are a pod and its volumes named in records, sentences and commands?
import type { Pod } from '../api/generated/types.ts'
import type { CauseNames } from './causes.ts'

export const podTarget = ({ metadata }: Pod) => ({
  kind: 'Pod',
  namespace: metadata.namespace,
  name: metadata.name,
  uid: metadata.uid,
})

export function podNames(pod: Pod): CauseNames {
  return {
    pod: pod.metadata.name ?? '',
    ...(pod.metadata.namespace === undefined ? {} : { namespace: pod.metadata.namespace }),
    ...(pod.spec?.nodeName ? { node: pod.spec.nodeName } : {}),
  }
}

/** A volume that needs no claim is recorded by the pod and its name there: `kubernetes.io/nfs/UID-NAME`. */
export function ownVolumeName({ metadata, spec }: Pod, unique: string | undefined): CauseNames {
  const found = (spec?.volumes ?? []).find(({ name }) => unique?.endsWith(`${metadata.uid}-${name}`))
  return found ? { volume: found.name, ...(found.csi ? { driver: found.csi.driver } : {}) } : {}
}

/** With the last line of what went wrong: a program's own words come first, what we make of them last. */
export const withWords = (names: CauseNames, words: string | undefined): CauseNames =>
  words === undefined ? names : { ...names, detail: words.trim().split('\n').at(-1) ?? '' }
