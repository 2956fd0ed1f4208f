// What is a namespace? A scope for names; only its /finalize subresource changes what holds it.
import { labels } from '../annotations.ts'
import { invalid } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { omit } from '../members.ts'
import { withLabels } from '../meta.ts'
import type { Namespace } from '../generated/types.ts'
import { isLabel, isQualifiedName } from '../validation/formats.ts'
import { checked } from '../validation/metadata.ts'
import { age } from './age.ts'
import { allVerbs, defineKind, statusOf } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const namespaceKind = defineKind<Namespace>({
  kind: 'Namespace',
  group: '',
  plural: 'namespaces',
  scope: 'Cluster',
  shortNames: ['ns'],
  verbs: allVerbs.filter((verb) => verb !== 'deletecollection'),
  subresources: [{ name: 'finalize', kind: 'Namespace', verbs: ['update'] }, statusOf('Namespace')],
  message: 'core.Namespace',
  description: 'A scope for names; deleting it deletes everything inside.',
  selectableFields: { 'status.phase': {} },
  defaults: defaultNamespace,
  validation: { name: isLabel, whole: validateNamespace, status: validateNamespaceStatus },
  strategy: {
    initialStatus: () => ({ phase: 'Active' }),
    // Only /finalize may change what holds a namespace.
    mainWrite: (next, { spec }) => (spec === undefined ? omit(next, ['spec']) : { ...next, spec }),
    isHeld: ({ spec }) => (spec?.finalizers?.length ?? 0) > 0,
    markDeleted: terminating,
  },
  access: { nodes: { may: 'readAll' } },
  table: {
    columns: [nameColumn, column('Status', 'Active or Terminating.'), ageColumn],
    cells: (namespace, now) => [
      namespace.metadata.name,
      namespace.status?.phase ?? '',
      age(namespace.metadata.creationTimestamp, now),
    ],
  },
})

function defaultNamespace(namespace: Namespace): Namespace {
  const { name } = namespace.metadata
  const labelled = name ? withLabels(namespace, { [labels.namespaceName]: name }) : namespace
  return { ...labelled, spec: { finalizers: ['kubernetes'], ...namespace.spec } }
}

function validateNamespace(namespace: Namespace): readonly FieldError[] {
  const text = 'name is neither a standard finalizer name nor is it fully qualified'
  return (namespace.spec?.finalizers ?? []).flatMap((name) => [
    ...checked('spec.finalizers', name, isQualifiedName),
    ...(name.includes('/') || name === 'kubernetes' ? [] : [invalid('spec.finalizers', name, text)]),
  ])
}

/** The phase says whether the namespace is being deleted, and nothing else does. */
function validateNamespaceStatus({ metadata, status }: Namespace): readonly FieldError[] {
  const going = metadata.deletionTimestamp !== undefined
  const phase = going ? 'Terminating' : 'Active'
  if (status?.phase === phase) return []
  const text = `may only be '${phase}' if \`deletionTimestamp\` is ${going ? 'not empty' : 'empty'}`
  return [invalid('status.Phase', status?.phase ?? '', text)]
}

/** The contents of a namespace take as long as they take: there is no grace period. */
function terminating(namespace: Namespace): Namespace {
  const metadata = omit(namespace.metadata, ['deletionGracePeriodSeconds'])
  return { ...namespace, metadata, status: { ...namespace.status, phase: 'Terminating' } }
}
