// Which pods does a text name? Pods and lists of pods, YAML or JSON, read, filled in and checked as an API server would do it,
// for nobody else does: a name that is no name would become a path.
import { createHash } from 'node:crypto'
import { parseAllDocuments } from 'yaml'
import { applyDefaults } from '../../api/defaults/defaults.ts'
import { summary } from '../../api/field-errors.ts'
import type { NodeName } from '../../api/names.ts'
import { readObject } from '../../api/schema/check.ts'
import type { Pod } from '../../api/generated/types.ts'
import { validateCreate } from '../../api/validation/validate.ts'

export interface ManifestOrigin {
  readonly node: NodeName
  readonly source: 'file' | 'http'
  /** When it was seen, as a timestamp. */
  readonly seen: string
}

export interface Manifests {
  readonly pods: readonly Pod[]
  /** What is wrong with documents that name none. */
  readonly problems: readonly Error[]
}

/** The annotation that changes with the contents, whatever the uid. */
export const configHash = 'kubernetes.io/config.hash'

/** One bad document is left out; the others count. */
export function parseManifests(text: string, origin: ManifestOrigin): Manifests {
  const pods: Pod[] = []
  const problems: Error[] = []
  // Pretty errors quote the text, which may hold a password.
  for (const document of parseAllDocuments(text, { version: '1.1', prettyErrors: false })) {
    try {
      const [wrong] = document.errors
      if (wrong) throw new Error(`line ${text.slice(0, wrong.pos[0]).split('\n').length}: ${wrong.message}`)
      const value = document.toJS() as { kind?: string; items?: unknown[] } | null // checked field by field below
      const items = value?.kind === 'PodList' || value?.kind === 'List' ? (value.items ?? []) : value ? [value] : []
      for (const item of items) pods.push(staticPod(item, origin))
    } catch (error) {
      problems.push(error instanceof Error ? error : new Error(String(error)))
    }
  }
  return { pods, problems }
}

/** As a kubelet makes them: named after the node, with a uid that changes with the contents. */
function staticPod(value: unknown, { node, source, seen }: ManifestOrigin): Pod {
  const given = value as Pod // its parts are checked here and by the schema
  if (given?.kind !== 'Pod' || typeof given.metadata?.name !== 'string' || !Array.isArray(given.spec?.containers)) {
    throw new Error('not a Pod with a name and containers')
  }
  const namespace = given.metadata.namespace ?? 'default'
  const hash = createHash('md5')
    .update(JSON.stringify([node, source, namespace, given]))
    .digest('hex')
  const annotations = {
    ...given.metadata.annotations,
    [configHash]: hash,
    'kubernetes.io/config.seen': seen,
    'kubernetes.io/config.source': source,
  }
  const uid = given.metadata.uid ?? hash.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  // The schema was applied in the next line, so the result is a pod.
  const read = (object: unknown) =>
    readObject('Pod', { apiVersion: 'v1', ...(object as object) }).value as unknown as Pod
  const pod = applyDefaults(
    'Pod',
    read({
      ...given,
      metadata: { ...given.metadata, namespace, name: `${given.metadata.name}-${node}`, uid, annotations },
      spec: { ...given.spec, nodeName: node },
    }),
  )
  const errors = validateCreate('Pod', pod)
  if (errors.length > 0) throw new Error(summary(errors))
  if (!/^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(uid)) throw new Error(`metadata.uid "${uid}" is no name`)
  return pod
}
