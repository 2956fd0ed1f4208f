// What is a service? Here only one exists, `default/kubernetes`: where this API server is reached. Programs look for it; nobody
// else's services would have any effect, so none can be made.
import type { Service } from '../generated/types.ts'
import { age } from './age.ts'
import { defineKind, reading } from './define-kind.ts'
import { ageColumn, column, nameColumn, wideColumn } from './printer.ts'

export const serviceKind = defineKind<Service>({
  kind: 'Service',
  group: '',
  plural: 'services',
  scope: 'Namespaced',
  shortNames: ['svc'],
  verbs: reading,
  message: 'core.Service',
  description: 'Where a program is reached. Only the service of this API server exists; others cannot be made.',
  table: {
    columns: [
      nameColumn,
      column('Type', 'How the service is reached.'),
      column('Cluster-IP', 'The address of the service.'),
      column('External-IP', 'Addresses outside the cluster.'),
      column('Port(s)', 'The ports of the service.'),
      ageColumn,
      wideColumn('Selector', 'The labels of the pods behind the service.'),
    ],
    cells: ({ metadata, spec }, now) => [
      metadata.name,
      spec?.type ?? 'ClusterIP',
      spec?.clusterIP ?? '<none>',
      '<none>',
      (spec?.ports ?? []).map(({ port, protocol }) => `${port}/${protocol ?? 'TCP'}`).join(',') || '<none>',
      age(metadata.creationTimestamp, now),
      '<none>',
    ],
  },
})
