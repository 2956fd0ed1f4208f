// What is a CSI driver object? It says what the driver can do and needs.
import { invalid, notSupported } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { CSIDriver, DriverTokenRequest } from '../generated/types.ts'
import { validateTokenDuration } from '../validation/common.ts'
import { duplicates, unchanged } from '../validation/metadata.ts'
import { driverWarnings } from '../validation/warnings.ts'
import { age } from './age.ts'
import { defineKind, reading } from './define-kind.ts'
import { ageColumn, column, nameColumn } from './printer.ts'

export const csiDriverKind = defineKind<CSIDriver>({
  kind: 'CSIDriver',
  group: 'storage.k8s.io',
  plural: 'csidrivers',
  scope: 'Cluster',
  message: 'storage.CSIDriver',
  description: 'What a CSI driver can do and needs.',
  fieldDescriptions: {
    'CSIDriverSpec.attachRequired': 'Whether volumes must be attached before they are mounted; the default is true.',
    'CSIDriverSpec.podInfoOnMount': 'Whether the driver is told which pod a volume is mounted for.',
    'CSIDriverSpec.fsGroupPolicy':
      'Whether ownership of files may be changed for a pod: ReadWriteOnceWithFSType, File or None.',
    'CSIDriverSpec.volumeLifecycleModes': 'Persistent, Ephemeral or both.',
  },
  defaults: defaultDriver,
  validation: { whole: validateDriver, change: validateDriverUpdate },
  warnings: driverWarnings,
  strategy: { updateNeedsVersion: true, deleteAnswersObject: true, generation: 'fromFirstChange' },
  access: { controllers: { verbs: reading }, nodes: { may: 'readAll' } },
  table: {
    columns: [
      nameColumn,
      column('AttachRequired', 'Whether volumes must be attached before they are mounted.', 'boolean'),
      column('PodInfoOnMount', 'Whether the driver is told about the pod.', 'boolean'),
      column('StorageCapacity', 'Whether the driver publishes its free capacity.', 'boolean'),
      column('TokenRequests', 'The audiences of the tokens the driver gets.'),
      column('RequiresRepublish', 'Whether volumes are published again and again.', 'boolean'),
      column('Modes', 'The volume life cycles that the driver supports.'),
      ageColumn,
    ],
    cells: (driver, now) => [
      driver.metadata.name,
      driver.spec.attachRequired ?? true,
      driver.spec.podInfoOnMount ?? false,
      driver.spec.storageCapacity ?? false,
      driver.spec.tokenRequests?.map((request) => request.audience).join(',') ?? '<unset>',
      driver.spec.requiresRepublish ?? false,
      (driver.spec.volumeLifecycleModes ?? []).join(',') || '<none>',
      age(driver.metadata.creationTimestamp, now),
    ],
  },
})

function defaultDriver(driver: CSIDriver): CSIDriver {
  const spec = {
    attachRequired: true,
    podInfoOnMount: false,
    storageCapacity: false,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    requiresRepublish: false,
    seLinuxMount: false,
    ...driver.spec,
  } as const
  const modes = driver.spec.volumeLifecycleModes ?? []
  return { ...driver, spec: { ...spec, volumeLifecycleModes: modes.length > 0 ? modes : ['Persistent'] } }
}

function validateDriver(driver: CSIDriver): readonly FieldError[] {
  const { spec } = driver
  const modes = ['Persistent', 'Ephemeral']
  const policies = ['File', 'None', 'ReadWriteOnceWithFSType']
  const policy = spec.fsGroupPolicy
  const period = spec.nodeAllocatableUpdatePeriodSeconds
  return [
    ...(spec.volumeLifecycleModes ?? []).flatMap((mode) =>
      modes.includes(mode) ? [] : [notSupported('spec.volumeLifecycleModes', mode, modes)],
    ),
    ...(policy === undefined || policies.includes(policy)
      ? []
      : [notSupported('spec.fsGroupPolicy', policy, policies)]),
    ...validateTokenRequests(spec.tokenRequests ?? [], 'spec.tokenRequests'),
    ...(period !== undefined && period < 10
      ? [invalid('spec.nodeAllocatableUpdatePeriodSeconds', period, 'must be greater than or equal to 10 seconds')]
      : []),
    ...(spec.serviceAccountTokenInSecrets !== undefined && (spec.tokenRequests ?? []).length === 0
      ? [
          invalid(
            'spec.serviceAccountTokenInSecrets',
            spec.serviceAccountTokenInSecrets,
            'serviceAccountTokenInSecrets is set but no tokenRequests are specified',
          ),
        ]
      : []),
  ]
}

function validateTokenRequests(requests: readonly DriverTokenRequest[], path: string): readonly FieldError[] {
  return [
    ...duplicates(
      requests.map(({ audience }) => audience),
      (index) => `${path}[${index}].audience`,
    ),
    ...requests.flatMap(({ expirationSeconds }, index) =>
      validateTokenDuration(expirationSeconds, `${path}[${index}].expirationSeconds`),
    ),
  ]
}

function validateDriverUpdate(next: CSIDriver, previous: CSIDriver): readonly FieldError[] {
  return [
    // Kubernetes names this path so, with the extra letters.
    ...unchanged(next.spec.attachRequired, previous.spec.attachRequired, 'spec.attachedRequired'),
    ...unchanged(next.spec.volumeLifecycleModes, previous.spec.volumeLifecycleModes, 'spec.volumeLifecycleModes'),
  ]
}
