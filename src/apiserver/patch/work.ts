// How much may one patch make the server do? Text that is read once is bounded by its size; what a patch does again and
// again to what is already there is counted here, and refused above a limit.
import { requestEntityTooLarge } from '../../api/status-error.ts'

/** A few hundredths of a second: each of an object's 10,000 values may be looked at several times. */
const maxSteps = 60_000
/** Moving an item of a list to another index is that much cheaper than looking at a value. */
const shiftsPerStep = 16
/** Writing a value as text and reading it again is dearer. */
const stepsPerCopy = 3

export interface Work {
  /** Counts values that were looked at. Throws 413 when there were too many. */
  look(values: number): void
  /** Counts values that were copied with all that is in them. */
  copy(values: number): void
  /** Counts items of a list that had to make room. */
  shift(items: number): void
}

export function createWork(): Work {
  let steps = 0
  const spend = (more: number): void => {
    steps += more
    if (steps > maxSteps) throw requestEntityTooLarge('the patch changes large lists or maps too often')
  }
  return {
    look: spend,
    copy: (values) => spend(values * stepsPerCopy),
    shift: (items) => spend(items / shiftsPerStep),
  }
}
