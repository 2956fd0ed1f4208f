// May something be created in this namespace, and may this namespace go? Objects need a living namespace;
// the namespaces that the server itself lives by stay.
import type { KindInfo } from '../../api/kinds.ts'
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { forbidden, notFound, StatusError } from '../../api/status-error.ts'
import { findObject } from '../objects/context.ts'
import type { CreateAttempt } from './chain.ts'

const immortal: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public'])

export async function namespaceExists({ context, info, object }: CreateAttempt): Promise<KubeObject> {
  const { namespace, name } = object.metadata
  if (!info.namespaced || !namespace) return object
  const found = await findObject(context, kinds.Namespace, { name: namespace })
  if (found === undefined) throw notFound(kinds.Namespace, namespace)
  if (found.metadata.deletionTimestamp !== undefined) throw terminating(info, name, namespace)
  return object
}

export function namespaceMayGo(info: KindInfo, object: KubeObject): void {
  if (info.name === 'Namespace' && immortal.has(object.metadata.name)) {
    throw forbidden(info, object.metadata.name, 'this namespace may not be deleted')
  }
}

function terminating(info: KindInfo, name: string, namespace: string): StatusError {
  const refused = forbidden(
    info,
    name,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
  )
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  }
  return new StatusError(refused.code, refused.reason, refused.message, { ...refused.details, causes: [cause] })
}
