// How does an orchestrator get its way when calls fail? It asks again with the same words until the answer is OK.
import { CsiError, effectOf, statusText } from '../../csi/codes.ts'
import { Finding } from '../finding.ts'
import type { Lab } from '../lab.ts'

const settleMs = 45_000
const againMs = 100

/** Statuses that leave open what happened are asked again; any other one is a finding. */
export async function settled<T>(lab: Lab, what: string, ask: () => Promise<T>): Promise<T> {
  const until = lab.clock.steady() + settleMs
  for (let failures = 0; ; failures++) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof CsiError)) throw error
      const mayRetry = effectOf(error.status) === 'unknown' && lab.clock.steady() < until
      if (!mayRetry) throw new Finding(`${what} does not succeed when it is asked again: ${statusText(error)}`)
      // The first time at once: that is when the driver may still be at work.
      if (failures > 0) await lab.clock.sleep(againMs, lab.signal)
    }
  }
}
