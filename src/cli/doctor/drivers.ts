// Can every driver be used? Judged by what the server and the nodes found when they called it.
import type { DriverTrouble } from '../../why/driver-links.ts'
import type { Finding } from './finding.ts'
import { problem } from './finding.ts'

export function judgeDrivers(troubles: readonly DriverTrouble[]): Finding[] {
  return troubles.map(({ sentence, node, since, socket }) => {
    const where = node === undefined ? '' : ` (node ${node})`
    const fix = `start the driver again, then: hawser driver check ${socket}`
    return problem('drivers', `${sentence}${where}${since === undefined ? '' : `, since ${since}`}`, fix)
  })
}
