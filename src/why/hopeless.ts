// Which waits are in vain? Causes that no retry mends: somebody must change or create an object first.
import type { Cause } from './causes.ts'

const hopeless: ReadonlySet<Cause> = new Set<Cause>([
  'attributesClassForeign',
  'attributesClassMissing',
  'badParameters',
  'claimMissing',
  'classMissing',
  'modeMismatch',
  'mountOptionsRefused',
  'namedVolumeMissing',
  'namedVolumeTaken',
  'namedVolumeUnfit',
  'noCommand',
  'noDefaultClass',
  'noNodes',
  'noRoomToGrow',
  'nodeFull',
  'noProvisioner',
  'noVolumeFits',
  'nodeAffinityConflict',
  'notSupported',
  'outOfRange',
  'pluginMissing',
  'provisionerAbsent',
  'schedulingGated',
  'selectorUnsupported',
  'snapshotClassMissing',
  'snapshotSourceMissing',
  'sourceMissing',
  'sourceTooLarge',
  'sourceUnusable',
  'volumeSpecInvalid',
])

export const isHopeless = (cause: Cause): boolean => hopeless.has(cause)
