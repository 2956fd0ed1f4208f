// Who may begin? New work waits while there is work to finish: a flood of creations would otherwise make every step of
// what they lead to (binding, attaching, mounting) wait behind the whole flood. First come, first served.
//
// Connections go before creations. The event loop accepts one per turn; if creations filled these turns, fifty clients
// that come at once would be let in one after the other, and each creation would be written to disk alone.

export interface Intake {
  /** Resolves when a creation may begin: at once, or in one of the next turns of the event loop. */
  begin(): Promise<void> | undefined
  /** A connection was accepted; others may be at the door. */
  welcome(): void
}

/** Nobody waits longer than so many turns for others to come in. */
const longestWelcome = 64

export function createIntake(perTurn: number, nextTurn: (run: () => void) => void): Intake {
  const waiting: (() => void)[] = []
  let begun = 0
  let planned = false
  /** A connection has come since the last turn. */
  let came = false
  /** So many turns in a row have been left to connections. */
  let welcomed = 0
  /** Those who waited for connections are on their way, some in every turn; they wait for no further ones. */
  let serving = false

  function plan(): void {
    if (planned) return
    planned = true
    nextTurn(turn)
  }

  function turn(): void {
    planned = false
    welcomed = came && !serving && welcomed < longestWelcome ? welcomed + 1 : 0
    came = false
    const next = welcomed > 0 ? [] : waiting.splice(0, perTurn)
    serving = welcomed === 0 && waiting.length > 0
    begun = next.length
    for (const start of next) start()
    if (welcomed > 0 || begun > 0) plan()
  }

  return {
    begin() {
      // Whoever comes first waits for one turn: it shows whether others follow.
      if (!planned) came = true
      plan()
      if (begun < perTurn && waiting.length === 0 && welcomed === 0 && !came) {
        begun++
        return undefined
      }
      return new Promise((resolve) => void waiting.push(resolve))
    },
    welcome() {
      came = true
      plan()
    },
  }
}
