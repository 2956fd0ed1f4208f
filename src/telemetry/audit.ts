// What is one line of the audit log, and who takes it? The API server and the node's own server write the same form.

export interface AuditRecord {
  /** Who is behind the request, whoever it acts as. */
  readonly user: string
  /** As whom it acts, or wanted to (`kubectl --as`). */
  readonly impersonatedUser?: string
  /** The address it came from. */
  readonly source?: string
  /** The node that was asked directly; absent when the API server was. */
  readonly node?: string
  readonly verb: string
  readonly resource: string
  readonly namespace?: string
  readonly name?: string
  readonly subresource?: string
  /** Of a document that was refused. */
  readonly path?: string
  readonly code: number
  readonly ms: number
  readonly dryRun?: true
}

export interface Audit {
  /** Why nothing can be written down now, if that must stop requests: ask before doing what must be written down. */
  refusal(): string | undefined
  /** Settles when the record is written. Rejects when it is not, if that must stop requests. */
  write(record: AuditRecord): Promise<void>
}

/** What to do when the audit log cannot be written: refuse what belongs into it, or go on without. */
export type AuditFailure = 'refuse' | 'continue'
