// Who may begin? New work waits while there is work to finish: a flood of creations would otherwise make every step of
// what they lead to (binding, attaching, mounting) wait behind the whole flood. First come, first served.

export interface Intake {
  /** Resolves when a creation may begin: at once, or in one of the next turns of the event loop. */
  begin(): Promise<void> | undefined
}

export function createIntake(perTurn: number, nextTurn: (run: () => void) => void): Intake {
  const waiting: (() => void)[] = []
  let begun = 0
  let planned = false

  function plan(): void {
    if (planned) return
    planned = true
    nextTurn(() => {
      planned = false
      begun = Math.min(waiting.length, perTurn)
      for (const start of waiting.splice(0, perTurn)) start()
      if (begun > 0) plan()
    })
  }

  return {
    begin() {
      plan()
      if (begun < perTurn && waiting.length === 0) {
        begun++
        return undefined
      }
      return new Promise((resolve) => void waiting.push(resolve))
    },
  }
}
