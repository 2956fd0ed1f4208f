// What is a persistent volume? Its rules are long and stand in validation/persistent-volume.ts.
import { accessModesText } from '../access-modes.ts'
import { defaultVolumeSource } from '../defaults/volume-sources.ts'
import type { PersistentVolume } from '../generated/types.ts'
import { classOf } from '../storage-class.ts'
import { validateVolume, validateVolumeUpdate } from '../validation/persistent-volume.ts'
import { volumeWarnings } from '../validation/warnings.ts'
import { age } from './age.ts'
import type { Part } from './define-kind.ts'
import { defineKind, reading, statusOf, statusVerbs } from './define-kind.ts'
import { ageColumn, column, nameColumn, wideColumn } from './printer.ts'

export const persistentVolumeKind = defineKind<PersistentVolume>({
  kind: 'PersistentVolume',
  group: '',
  plural: 'persistentvolumes',
  scope: 'Cluster',
  shortNames: ['pv'],
  subresources: [statusOf('PersistentVolume')],
  message: 'core.PersistentVolume',
  description: 'A piece of storage with a life of its own, independent of any pod that uses it.',
  fieldDescriptions: {
    PersistentVolumeSpec: 'What the volume is: its size, its storage and how it may be used.',
    'PersistentVolumeSpec.capacity': 'The size of the volume.',
    'PersistentVolumeSpec.accessModes': 'All the ways in which the volume can be mounted.',
    'PersistentVolumeSpec.claimRef': 'The claim that the volume is bound to or reserved for.',
    'PersistentVolumeSpec.persistentVolumeReclaimPolicy':
      'What happens when the claim is gone: Retain, Delete or Recycle.',
    'PersistentVolumeSpec.storageClassName': 'The class this volume belongs to.',
    'PersistentVolumeSpec.mountOptions': 'Options for mounting; wrong ones make the mount fail.',
    'PersistentVolumeSpec.volumeMode': 'Filesystem (the default) or Block.',
    'PersistentVolumeSpec.nodeAffinity': 'The nodes from which the volume can be reached.',
    'PersistentVolumeSpec.csi': 'Storage handled by a CSI driver.',
    'PersistentVolumeSpec.local': 'A disk or directory of one node.',
    'PersistentVolumeSpec.hostPath': 'A directory of the node; for tests on one machine.',
    'PersistentVolumeSpec.nfs': 'A directory that a server exports by NFS.',
    PersistentVolumeStatus: 'Where the volume is in its life; written by the controllers.',
    'CSIPersistentVolumeSource.driver': 'The name of the driver.',
    'CSIPersistentVolumeSource.volumeHandle': 'What the driver calls the volume.',
    'CSIPersistentVolumeSource.volumeAttributes': 'What the driver needs to know to publish the volume.',
  },
  defaults: defaultVolume,
  validation: { whole: validateVolume, change: validateVolumeUpdate, metadataErrorsOnce: true },
  warnings: volumeWarnings,
  strategy: {
    deleteAnswersObject: true,
    protectionFinalizer: 'kubernetes.io/pv-protection',
    initialStatus: (_volume, now) => ({ phase: 'Pending', lastPhaseTransitionTime: now }),
    statusWrite: (status, before, now) =>
      transitionTime({ ...status, phase: status?.['phase'] ?? 'Pending' }, before, now),
  },
  access: {
    controllers: { verbs: [...reading, 'create', 'update', 'patch', 'delete'], subresources: { status: statusVerbs } },
    nodes: { may: 'volumesOfPods' },
  },
  table: {
    columns: [
      nameColumn,
      column('Capacity', 'The size of the volume.'),
      column('Access Modes', 'How the volume may be mounted.'),
      column('Reclaim Policy', 'What happens to the volume when its claim is gone.'),
      column('Status', 'The phase of the volume.'),
      column('Claim', 'The claim that the volume is bound to or reserved for.'),
      column('StorageClass', 'The class of the volume.'),
      column('VolumeAttributesClass', 'The class of mutable attributes.'),
      column('Reason', 'Why the volume is in this phase.'),
      ageColumn,
      wideColumn('VolumeMode', 'Filesystem or Block.'),
    ],
    cells(volume, now) {
      const { spec, status, metadata } = volume
      const claim = spec?.claimRef
      return [
        metadata.name,
        spec?.capacity?.['storage'] ?? '0',
        accessModesText(spec?.accessModes),
        spec?.persistentVolumeReclaimPolicy ?? '',
        metadata.deletionTimestamp !== undefined ? 'Terminating' : (status?.phase ?? ''),
        claim === undefined ? '' : `${claim.namespace ?? ''}/${claim.name ?? ''}`,
        classOf(volume),
        spec?.volumeAttributesClassName ?? '<unset>',
        status?.reason ?? '',
        age(metadata.creationTimestamp, now),
        spec?.volumeMode ?? '<unset>',
      ]
    },
  },
})

function defaultVolume(volume: PersistentVolume): PersistentVolume {
  const spec = defaultVolumeSource(volume.spec)
  return { ...volume, spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem', ...spec } }
}

/** A new phase gets the current time unless the client set one; an unchanged phase keeps its time (API-3). */
function transitionTime(status: Part, before: Part | undefined, now: string): Part {
  const old = before ?? {}
  const time = status['lastPhaseTransitionTime']
  const changed = status['phase'] !== old['phase']
  if (changed && (time === undefined || time === old['lastPhaseTransitionTime'])) {
    return { ...status, lastPhaseTransitionTime: now }
  }
  if (!changed && time === undefined && old['lastPhaseTransitionTime'] !== undefined) {
    return { ...status, lastPhaseTransitionTime: old['lastPhaseTransitionTime'] }
  }
  return status
}
