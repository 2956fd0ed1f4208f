// What is a lease? A right held for a while and renewed: leadership, or being alive.
import { invalid } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { Lease } from '../generated/types.ts'
import { age } from './age.ts'
import { defineKind, reading } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const leaseKind = defineKind<Lease>({
  kind: 'Lease',
  group: 'coordination.k8s.io',
  plural: 'leases',
  scope: 'Namespaced',
  message: 'coordination.Lease',
  description: 'A right held for a while and renewed, such as leadership or being alive.',
  validation: { whole: validateLease },
  strategy: { updateCreates: true, updateNeedsVersion: true },
  access: {
    controllers: { verbs: reading },
    nodes: { may: 'ownName', inNamespace: 'kube-node-lease' },
  },
  table: {
    columns: [nameColumn, column('Holder', 'Who holds the lease.'), ageColumn],
    cells: (lease, now) => [
      lease.metadata.name,
      lease.spec?.holderIdentity ?? '',
      age(lease.metadata.creationTimestamp, now),
    ],
  },
})

function validateLease(lease: Lease): readonly FieldError[] {
  const { leaseDurationSeconds: duration, leaseTransitions: transitions } = lease.spec ?? {}
  return [
    ...(duration !== undefined && duration <= 0
      ? [invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0')]
      : []),
    ...(transitions !== undefined && transitions < 0
      ? [invalid('spec.leaseTransitions', transitions, 'must be greater than or equal to 0')]
      : []),
  ]
}
