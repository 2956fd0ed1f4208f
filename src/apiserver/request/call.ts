// Who asks, and what is every verb told about the request that it serves?

/** Who asks. */
export interface User {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** What every verb is told about the request it serves. */
export interface Call {
  readonly user: User
  readonly signal: AbortSignal
  /** Becomes a Warning header of the answer. */
  warn(text: string): void
}
