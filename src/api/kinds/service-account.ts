// What is a service account? An identity for pods; its tokens come from the token subresource.
import type { ServiceAccount } from '../generated/types.ts'
import { age } from './age.ts'
import { defineKind } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const serviceAccountKind = defineKind<ServiceAccount>({
  kind: 'ServiceAccount',
  group: '',
  plural: 'serviceaccounts',
  scope: 'Namespaced',
  shortNames: ['sa'],
  subresources: [
    { name: 'token', kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] },
  ],
  message: 'core.ServiceAccount',
  description: 'An identity for the programs in a pod.',
  strategy: { deleteAnswersObject: true },
  access: { nodes: { may: 'usedByPods', as: 'serviceAccounts', writes: 'token', onlyGet: true } },
  table: {
    columns: [nameColumn, column('Secrets', 'The number of secrets.'), ageColumn],
    cells: (account, now) => [
      account.metadata.name,
      (account.secrets ?? []).length,
      age(account.metadata.creationTimestamp, now),
    ],
  },
})
