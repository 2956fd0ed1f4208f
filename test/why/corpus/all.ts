// All cases, and the causes that none of them makes: each with the test that does.
import type { Cause } from '../../../src/why/causes.ts'
import type { Case } from './case.ts'
import { claimCases } from './claim-cases.ts'
import { driverCases } from './driver-cases.ts'
import { moreCases } from './more-cases.ts'
import { podCases } from './pod-cases.ts'
import { snapshotClassCases } from './snapshot-class-cases.ts'
import { spaceCases } from './space-cases.ts'

export const cases: readonly Case[] = [
  ...driverCases,
  ...claimCases,
  ...podCases,
  ...spaceCases,
  ...snapshotClassCases,
  ...moreCases,
]

const real = 'test/linux/why.test.ts'
const moments = 'lasts for a moment: test/stories and test/claims ask for it there'
const general = 'for codes of a newer version: test/why/rows.ts'

export const notPlayed: Readonly<Partial<Record<Cause, string>>> = {
  storageShared: 'test/csi/hostile-driver.test.ts',
  anotherNodeFirst: 'test/stories/attachment.test.ts',
  askedDeleter: moments,
  attachFailed: general,
  busy: moments,
  claimNotMade: 'test/claims',
  claimsUnresolved: moments,
  classForbidsExpansion: 'the API refuses it: test/why/rows.ts',
  containerStarting: moments,
  detachFailed: general,
  devicePathUnread: moments,
  driverAbsent: 'test/csi/job-rules.test.ts',
  expansionFailed: general,
  growsOnlyUnused: 'test/csi/job-rules.test.ts',
  imageMissing: 'test/linux/image-volume.test.ts',
  inUse: moments,
  labelMismatch: 'test/stories/selinux.test.ts',
  maybeAttachedElsewhere: 'test/stories/attachment.test.ts',
  misbound: 'test/claims',
  modifyFailed: general,
  nobodyAttaches: 'test/why/rows.ts',
  notAttached: moments,
  notReportedInUse: moments,
  ownershipFailed: 'test/csi/node-rules.test.ts',
  podListIncomplete: moments,
  podUnscheduled: 'what the pod waits for is told instead: claim/pod-fits-nowhere',
  programMissing: real,
  provisioningDisabled: 'test/claims',
  provisioningFailed: general,
  retrying: moments,
  savedStateBroken: 'test/csi/node-rules.test.ts',
  snapshotFailed: general,
  snapshotUnknown: 'test/csi/job-rules.test.ts',
  storageHangs: 'test/linux/hung-filesystem.test.ts',
  storageUnreachable: real,
  tokenUnavailable: 'test/why/rows.ts',
  topologyMissing: 'test/csi/job-rules.test.ts',
  unformattedReadOnly: real,
  unmountFailed: general,
  usedByPods: moments,
  volumeBusy: moments,
  volumeFailed: 'test/claims',
  volumesBeingBound: moments,
  volumesUnresolved: moments,
  wrongFilesystem: real,
}
