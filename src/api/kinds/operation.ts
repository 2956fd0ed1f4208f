// What is an operation record? Our own kind: one operation on a volume, written by who did it, in one write with its status.
import { required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { OperationRecord } from '../generated/types.ts'
import { age, duration } from './age.ts'
import { defineKind, reading, statusOf } from './define-kind.ts'
import { ageColumn, column, nameColumn, wideColumn } from './printer.ts'

export const operationKind = defineKind<OperationRecord>({
  kind: 'Operation',
  group: 'hawser.dev',
  plural: 'operations',
  scope: 'Cluster',
  shortNames: ['op'],
  subresources: [statusOf('Operation')],
  message: 'hawser.Operation',
  shape: {
    'hawser.Operation': ['metadata: meta.ObjectMeta', 'spec: hawser.OperationSpec!', 'status: hawser.OperationStatus'],
    'hawser.OperationSpec': [
      'actor: string!',
      'operation: string!',
      'objects: *core.ObjectReference',
      'volume: string',
      'pod: string',
      'node: string',
      'endpoint: string',
    ],
    'hawser.OperationStatus': [
      'phase: Running|Succeeded|Failed|Waiting!',
      'step: string',
      'startedAt: meta.MicroTime',
      'failingSince: meta.MicroTime',
      'finishedAt: meta.MicroTime',
      'error: hawser.OperationError',
      'nextTry: meta.MicroTime',
      'attempts: int32',
      'waiting: *hawser.OperationWaiting',
    ],
    'hawser.OperationError': ['code: string', 'message: string!', 'effect: string'],
    'hawser.OperationWaiting': [
      'reason: string!',
      'message: string',
      'pod: string',
      'node: string',
      'since: meta.MicroTime',
      'until: meta.MicroTime',
    ],
  },
  description: 'One operation on a volume: who did what, when, and how it ended.',
  fieldDescriptions: {
    'OperationSpec.operation': 'What was done, such as mount or detach.',
    'OperationSpec.endpoint': 'The socket of a driver that was called or is waited for.',
    'OperationStatus.failingSince': 'When the first of the tries began that have all failed.',
    'OperationStatus.waiting': 'What the operation waits for.',
  },
  selectableFields: { 'spec.node': {} },
  validation: { whole: validateOperation },
  strategy: { creatorSetsStatus: true, updateWritesStatus: true, generation: 'fromCreate' },
  access: { controllers: { verbs: [...reading, 'create', 'update', 'patch', 'delete'] }, nodes: { may: 'ownRecords' } },
  table: {
    columns: [
      nameColumn,
      column('Operation', 'What was done.'),
      column('Volume', 'The volume it was done to.'),
      column('Phase', 'How far it got.'),
      column('Took', 'How long it took, or has taken so far.'),
      ageColumn,
      wideColumn('Node', 'Where it was done.'),
      wideColumn('Pod', 'The pod it was done for.'),
      wideColumn('Actor', 'Who did it.'),
      wideColumn('Error', 'What went wrong.'),
    ],
    cells: (operation, now) => [
      operation.metadata.name,
      operation.spec.operation,
      operation.spec.volume ?? '',
      operation.status?.phase ?? '',
      tookCell(operation, now),
      age(operation.metadata.creationTimestamp, now),
      operation.spec.node ?? '<none>',
      operation.spec.pod ?? '<none>',
      operation.spec.actor,
      operation.status?.error?.message ?? '<none>',
    ],
  },
})

function validateOperation(record: OperationRecord): readonly FieldError[] {
  const spec: Partial<OperationRecord['spec']> | undefined = record.spec
  return [...(spec?.actor ? [] : [required('spec.actor')]), ...(spec?.operation ? [] : [required('spec.operation')])]
}

function tookCell(operation: OperationRecord, now: number): string {
  const { startedAt, finishedAt } = operation.status ?? {}
  if (startedAt === undefined) return '<unknown>'
  const end = finishedAt === undefined ? now : Date.parse(finishedAt)
  return duration(end - Date.parse(startedAt))
}
