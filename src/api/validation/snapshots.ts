// What do snapshots and their contents check alike? A deletion policy, and exactly one source.
import { invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'

const policies = ['Delete', 'Retain']

export function validateDeletionPolicy(policy: string | undefined, path: string): readonly FieldError[] {
  if (!policy) return [required(path)]
  return policies.includes(policy) ? [] : [notSupported(path, policy, policies)]
}

export function exactlyOne(
  left: string | undefined,
  right: string | undefined,
  path: string,
  leftName: string,
  rightName: string,
): readonly FieldError[] {
  if ((left === undefined) !== (right === undefined)) return []
  return [
    invalid(path, { [leftName]: left, [rightName]: right }, `exactly one of ${leftName} and ${rightName} must be set`),
  ]
}
