// Which checks are there? All of them, in the order in which they run.
import type { Check, SuiteName } from './check.ts'
import { faultChecks } from './faults/life.ts'
import { attachmentChecks } from './honesty/attachments.ts'
import { concurrencyChecks } from './honesty/concurrency.ts'
import { factChecks } from './honesty/facts.ts'
import { listChecks } from './honesty/lists.ts'
import { mountChecks } from './honesty/mounts.ts'
import { nodeRefusalChecks } from './honesty/node-refusals.ts'
import { refusalChecks } from './honesty/refusals.ts'
import { secretChecks } from './honesty/secrets.ts'
import { snapshotChecks } from './honesty/snapshots.ts'
import { unclaimedChecks } from './honesty/unclaimed.ts'
import { volumeChecks } from './honesty/volumes.ts'
import { copyChecks } from './life/copies.ts'
import { dataChecks } from './life/mounts.ts'

export const allChecks: readonly Check[] = [
  ...factChecks,
  ...volumeChecks,
  ...listChecks,
  ...snapshotChecks,
  ...attachmentChecks,
  ...mountChecks,
  ...refusalChecks,
  ...nodeRefusalChecks,
  ...unclaimedChecks,
  ...concurrencyChecks,
  ...secretChecks,
  ...dataChecks,
  ...copyChecks,
  ...faultChecks,
]

export function checksOf(suites: readonly SuiteName[]): readonly Check[] {
  return allChecks.filter(({ suite }) => suites.includes(suite))
}
