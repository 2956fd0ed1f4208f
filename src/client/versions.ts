// Which of two versions of an object is newer? resourceVersions are whole numbers and compare as such (CTL-3):
// "10" is newer than "9". Anything else is an error, never a guess.
import type { KubeObject } from '../api/meta.ts'

export function versionNumber(resourceVersion: string | undefined): number {
  if (resourceVersion === undefined || !/^\d+$/.test(resourceVersion))
    throw new Error(`resourceVersion ${JSON.stringify(resourceVersion)} is not a whole number`)
  return Number(resourceVersion)
}

export function versionOf(object: KubeObject): number {
  return versionNumber(object.metadata.resourceVersion)
}
