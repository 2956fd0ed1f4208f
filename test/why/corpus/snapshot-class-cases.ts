// Snapshots whose class is of another driver, or not chosen: the default class of the volume's own driver counts.
import type { WholeCluster } from '../../kit/whole-cluster.ts'
import { driver } from '../../kit/whole-cluster.ts'
import type { Case } from './case.ts'
import { bound, inDefault, steps } from './steps.ts'

const snapshotClass =
  (name: string, of: string, isDefault = false) =>
  ({ client }: WholeCluster) =>
    client.create('VolumeSnapshotClass', {
      metadata: { name, annotations: { 'snapshot.storage.kubernetes.io/is-default-class': String(isDefault) } },
      driver: of,
      deletionPolicy: 'Delete',
    })
const snapshotOf =
  (claim: string, className?: string) =>
  ({ client }: WholeCluster) =>
    client.create('VolumeSnapshot', {
      metadata: inDefault('snap'),
      spec: {
        source: { persistentVolumeClaimName: claim },
        ...(className === undefined ? {} : { volumeSnapshotClassName: className }),
      },
    })

export const snapshotClassCases: readonly Case[] = [
  {
    id: 'snapshot/only-another-drivers-default',
    before: steps(bound, snapshotClass('a-foreign', 'other.example.com', true), snapshotClass('own', driver)),
    make: snapshotOf('data'),
    ask: 'vs/snap',
    cause: 'snapshotClassMissing',
    says: /no default VolumeSnapshotClass of driver model\.hawser\.dev; classes of this driver: own/,
    mend: { run: ['hawser delete volumesnapshot snap --yes --no-wait'] },
    mendsWithinMs: 400_000,
  },
  {
    id: 'snapshot/class-of-another-driver',
    before: steps(bound, snapshotClass('foreign', 'other.example.com')),
    make: snapshotOf('data', 'foreign'),
    ask: 'vs/snap',
    cause: 'snapshotClassForeign',
    says: /names VolumeSnapshotClass foreign, which is not of driver model\.hawser\.dev/,
    saysNot: /cannot be created from its source/,
    mend: { run: ['hawser delete volumesnapshot snap --yes --no-wait'] },
    mendsWithinMs: 400_000,
  },
]
