// What is a disk in the model? A size and what was put on it; block device nodes are views of it.

import type { DiskContent } from '../host.ts'
import type { ModelFilesystem } from './tree.ts'

/** Storage that outlives the device nodes and loop devices through which it is seen. */
export interface ModelDisk {
  sizeBytes: bigint
  content: DiskContent
  /** The filesystem made on it, with all its files. */
  filesystem: ModelFilesystem | undefined
  /** What fsck will say next. */
  health: 'clean' | 'corrected' | 'errorsLeft'
}

export interface ModelDevice {
  readonly path: string
  /** "major:minor" */
  readonly number: string
  readonly disk: ModelDisk
  readonly readOnly: boolean
  /** Set for loop devices: the path of the backing file. */
  readonly backing: string | undefined
  readonly autoClear: boolean
  /** The size the kernel knows; a grown disk shows only after a refresh. */
  sizeBytes: bigint
}

export function createDisk(sizeBytes: bigint): ModelDisk {
  return { sizeBytes, content: { kind: 'blank' }, filesystem: undefined, health: 'clean' }
}
