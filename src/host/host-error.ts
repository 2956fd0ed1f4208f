// How does a call to the host fail? One error class with the system's own code.
// `certain: false` says that the call may still be running or may have taken effect.

/** An errno name, or one of ours: TIMEOUT (deadline passed), HUNG (an earlier call on that path still hangs),
 *  ABORTED (the caller gave up), NOPROGRAM (no such program), CHILD (a program failed), FORMAT (unreadable answer),
 *  NOTTRUSTED (others can change what is to be used). */
export type HostErrorCode = string

export interface HostErrorOptions {
  readonly path?: string
  readonly certain?: boolean
  readonly cause?: unknown
  readonly child?: HostError['child']
}

export class HostError extends Error {
  override readonly name = 'HostError'
  readonly code: HostErrorCode
  readonly certain: boolean
  readonly path: string | undefined
  /** How the program ended that failed, if one did. */
  readonly child: { readonly exitCode: number; readonly output: string } | undefined

  constructor(code: HostErrorCode, message: string, options: HostErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.path = options.path
    this.certain = options.certain ?? true
    this.child = options.child
  }
}

export function hasCode(error: unknown, ...codes: readonly HostErrorCode[]): boolean {
  return error instanceof HostError && codes.includes(error.code)
}

/** Errors that a path on a dead or broken mount answers with (MOUNT-12); the path does exist. */
const deadMountCodes = [
  'ENOTCONN',
  'ESTALE',
  'EIO',
  'EACCES',
  'EHOSTDOWN',
  'EWOULDBLOCK',
  'EAGAIN',
  'ENODEV',
  'TIMEOUT',
  'HUNG',
]

export function isDeadMount(error: unknown): boolean {
  return error instanceof HostError && deadMountCodes.includes(error.code)
}
