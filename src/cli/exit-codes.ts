// What does a script learn from the exit code? Stable numbers, also printed by `hawser --help`.

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  /** `why`: something waits; `doctor`, `driver check`: problems were found. */
  waiting: 4,
  unreachable: 5,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]
