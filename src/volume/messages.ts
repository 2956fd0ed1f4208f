// Which words do users and their tools read? Event reasons and the sentences around them (MSG-1 … MSG-3, EVT-*).

export const eventReasons = {
  attached: 'SuccessfulAttachVolume',
  attachFailed: 'FailedAttachVolume',
  mountFailed: 'FailedMount',
  mapFailed: 'FailedMapVolume',
  mounted: 'SuccessfulMountVolume',
  filesystemMismatch: 'FailedMountOnFilesystemMismatch',
  fileSystemResized: 'FileSystemResizeSuccessful',
  fileSystemResizeFailed: 'FileSystemResizeFailed',
  resizeFailed: 'VolumeResizeFailed',
  resized: 'VolumeResizeSuccessful',
  alreadyMounted: 'AlreadyMountedVolume',
  permissionsChanging: 'VolumePermissionChangeInProgress',
  attachLimit: 'VolumeAttachmentLimitExceeded',
} as const

/** Whom an operation is about, as its sentences name it. */
export interface Subject {
  /** The spec's name; `nil` when the spec is unknown; the unique name for mounted volumes (MSG-3). */
  readonly name: string
  readonly details: string
}

export const subjects = {
  toAttach: (name: string, unique: string, node: string): Subject => ({
    name,
    details: `(UniqueName: "${unique}") from node "${node}"`,
  }),
  attached: (name: string | undefined, unique: string, node: string): Subject => ({
    name: name ?? 'nil',
    details: `(UniqueName: "${unique}") on node "${node}"`,
  }),
  toMount: (name: string, unique: string, pod: { name: string; uid: string }): Subject => ({
    name,
    details: `(UniqueName: "${unique}") pod "${pod.name}" (UID: "${pod.uid}")`,
  }),
  mounted: (unique: string, podUid: string): Subject => ({
    name: unique,
    details: `(UniqueName: "${unique}") pod "${podUid}" (UID: "${podUid}")`,
  }),
}

/** What a Kubernetes event says. There is a space before the colon, and one at the end without an error (MSG-1). */
export function eventText(prefix: string, subject: Subject, error?: Error): string {
  return `${prefix} for volume "${subject.name}" ${error ? `: ${error.message}` : ''}`
}

/** The detailed form, for logs and returned errors (MSG-2). */
export function detailedText(prefix: string, subject: Subject, error?: Error): string {
  return `${prefix} for volume "${subject.name}" ${subject.details} ${error ? `: ${error.message}` : ''}`
}
