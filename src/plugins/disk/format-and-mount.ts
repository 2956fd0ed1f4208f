// How does a disk become a mounted filesystem? Look, format only what is blank, check, mount (FMT-1 … FMT-7).
// A disk that holds anything at all is never formatted.

import type { DiskContent, Host } from '../../host/host.ts'
import { HostError, hasCode } from '../../host/host-error.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Effect, ErrorTag } from '../../volume/effect.ts'
import { VolumeError } from '../../volume/effect.ts'
import type { ErrorCode } from '../../volume/error-codes.ts'

export interface FormatRequest {
  readonly device: string
  readonly target: string
  /** Empty means ext4. */
  readonly fsType: string
  /** "ro" among them means: never write, neither format nor check. */
  readonly options: readonly string[]
  readonly secretOptions?: readonly string[]
  readonly formatOptions?: readonly string[]
}

type DiskHost = Pick<Host, 'mounts' | 'filesystems'>

export async function formatAndMount(host: DiskHost, request: FormatRequest, signal: AbortSignal): Promise<void> {
  const { device, target, secretOptions = [] } = request
  const type = request.fsType === '' ? 'ext4' : request.fsType
  const readOnly = [...request.options, ...secretOptions].includes('ro')
  const found = await look(host, device, signal)
  if (found.kind === 'blank') {
    if (readOnly)
      throw failure(
        'UnformattedReadOnly',
        `cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`,
        undefined,
      )
    await format(host, request, type, signal)
  } else if (!readOnly) await check(host, device, signal)
  try {
    await host.mounts.mount(
      { source: device, target, type, options: [...request.options, 'defaults'], secretOptions },
      signal,
    )
  } catch (error) {
    throw mountFailure(error, found, type)
  }
}

async function look(host: DiskHost, device: string, signal: AbortSignal): Promise<DiskContent> {
  try {
    return await host.filesystems.detect(device, signal)
  } catch (error) {
    throw failure('GetDiskFormatFailed', `failed to get disk format of disk ${device}: ${errorText(error)}`, error)
  }
}

async function format(host: DiskHost, request: FormatRequest, type: string, signal: AbortSignal): Promise<void> {
  const { device, target, formatOptions = [] } = request
  try {
    await host.filesystems.make({ device, type, options: formatOptions }, signal)
  } catch (error) {
    const options = [...shownOptions(request), 'defaults'].join(',')
    const { code, output } = endOf(error)
    const facts = `type:("${type}") target:("${target}") options:("${options}") errcode:(${code}) output:(${output})`
    throw failure('FormatFailed', `format of disk "${device}" failed: ${facts}`, error)
  }
}

/** Secret options are counted in messages, never shown (TP-19). */
function shownOptions({ options, secretOptions = [] }: FormatRequest): readonly string[] {
  return [...options, ...secretOptions.map(() => '<masked>')]
}

function endOf(error: unknown): { readonly code: string; readonly output: string } {
  if (hasCode(error, 'NOPROGRAM')) return { code: 'executable file not found in $PATH', output: '' }
  const child = error instanceof HostError ? error.child : undefined
  return child === undefined
    ? { code: errorText(error), output: '' }
    : { code: `exit status ${child.exitCode}`, output: child.output }
}

/** Only errors that fsck could not correct are fatal; a check that could not run is ignored (FMT-4). */
async function check(host: DiskHost, device: string, signal: AbortSignal): Promise<void> {
  const result = await host.filesystems.check(device, signal)
  if (result.kind !== 'errorsLeft') return
  throw failure(
    'HasFilesystemErrors',
    `'fsck' found errors on device ${device} but could not correct them: ${result.output}`,
    undefined,
  )
}

function mountFailure(error: unknown, found: DiskContent, type: string): VolumeError {
  const present = found.kind === 'filesystem' ? found.type : found.kind === 'unknown' ? found.description : type
  if (present === type || hasCode(error, 'TIMEOUT', 'ABORTED'))
    return failure('UnknownMountError', errorText(error), error)
  // What the disk holds comes last, after the sentence that tools match on.
  const text = `${errorText(error).trimEnd()}\nThe disk holds ${present}, not ${type}.\n`
  return failure('FilesystemMismatch', text, error, ['filesystemMismatch'])
}

function failure(code: ErrorCode, message: string, cause: unknown, tags: readonly ErrorTag[] = []): VolumeError {
  const effect: Effect = cause instanceof HostError && !cause.certain ? 'unknown' : 'none'
  return new VolumeError(code, message, { effect, tags, ...(cause === undefined ? {} : { cause }) })
}
