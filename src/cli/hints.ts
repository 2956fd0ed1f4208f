// Which commands do we suggest? Only ones that work as they stand: for kinds that they know, and in the right namespace.
import { kinds } from '../api/kinds.ts'
import type { KindName } from '../api/kinds.ts'
import type { ObjectRef } from '../api/meta.ts'
import { isSubjectKind } from '../why/facts.ts'

/** ` -n shop`; nothing for the namespace that everybody starts in. */
export const inNamespace = (namespace: string | undefined) =>
  namespace === undefined || namespace === 'default' ? '' : ` -n ${namespace}`

/** The command that tells more about an object: `why` where it can, else `describe`. */
export function askAbout(kind: KindName, { name, namespace }: ObjectRef): string {
  if (kind === 'Namespace') return `hawser get pods,pvc,volumesnapshots -n ${name}`
  const verb = isSubjectKind(kind) ? 'why' : 'describe'
  return `hawser ${verb} ${kinds[kind].singular}/${name}${inNamespace(namespace)}`
}
