// What is a check? Data that people and reports can read, and one function that asks the driver.
import type { ControllerCapabilityName, NodeCapabilityName, PluginCapabilityName } from '../csi/values.ts'
import type { DriverFacts } from './driver-report.ts'
import type { Lab } from './lab.ts'

export const suiteNames = ['honesty', 'life', 'faults'] as const
export type SuiteName = (typeof suiteNames)[number]

/** What each suite asks, for help and reports. */
export const suiteTexts: Readonly<Record<SuiteName, string>> = {
  honesty: 'does every call do what the driver claims and the specification says, again and at the same time?',
  life: 'is data kept: mounted again, read-only, grown, in snapshots, restored, cloned, among many, after deletion?',
  faults:
    'is anything left or lost when an answer gets lost, a call comes twice, its caller gives up, the driver is killed?',
}

export interface Needs {
  readonly plugin?: readonly PluginCapabilityName[]
  readonly controller?: readonly ControllerCapabilityName[]
  readonly node?: readonly NodeCapabilityName[]
  /** Capabilities of the controller that the driver must not claim. */
  readonly withoutController?: readonly ControllerCapabilityName[]
  readonly withoutNode?: readonly NodeCapabilityName[]
  /** Paths of the driver's node must be visible here, and mounting allowed. */
  readonly mounts?: true
  /** The machine must be able to grow a filesystem that is mounted. */
  readonly onlineGrowth?: true
  /** The lab runs the driver, and may kill it. */
  readonly kill?: true
}

export interface Check {
  /** `suite/area/what`. Stable: reports, baselines and CI settings name it. */
  readonly id: string
  readonly suite: SuiteName
  /** What holds for a good driver. */
  readonly title: string
  /** The call of the CSI specification that this is about, and what it says there. */
  readonly call: string
  readonly says: string
  readonly needs: Needs
  run(lab: Lab): Promise<void>
}

/** What keeps checks from being made on this machine. */
export interface Machine {
  readonly mountLack: string | undefined
  readonly growthLack: string | undefined
  readonly killLack: string | undefined
}

/** What the check lacks here; undefined when it can run. Pure. */
export function lackOf(needs: Needs, facts: DriverFacts, place: Machine): string | undefined {
  const wanted: readonly (readonly [readonly string[] | undefined, readonly string[]])[] = [
    [needs.plugin, facts.plugin],
    [needs.controller, facts.controller],
    [needs.node, facts.node],
  ]
  for (const [names = [], claimed] of wanted) {
    const missing = names.filter((name) => !claimed.includes(name))
    if (missing.length > 0) return `the driver does not claim ${missing.join(', ')}`
  }
  const isClaimed =
    needs.withoutController?.some((name) => facts.controller.includes(name)) ||
    needs.withoutNode?.some((name) => facts.node.includes(name))
  if (isClaimed) return 'only for drivers that do not claim the capability'
  if (needs.mounts && place.mountLack !== undefined) return place.mountLack
  if (needs.onlineGrowth && place.growthLack !== undefined) return place.growthLack
  return needs.kill ? place.killLack : undefined
}
