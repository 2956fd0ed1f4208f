// Are the reasons that `why` knows the reasons that the plans give? Checked by the compiler, and against the sources.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { AttachmentWaitReason } from '../../controllers/attachment/plan.ts'
import type { WaitReason as ControllerWaitReason } from '../../controllers/binding/wait-reasons.ts'
import { statusCodes } from '../../csi/codes.ts'
import type { WaitReason as NodeWaitReason } from '../../node/volumes/plan.ts'
import { causes } from './causes.ts'
import { attachmentReasons, codeCauses, controllerReasons, nodeReasons } from './reasons.ts'
import type { AttachmentReason, ControllerReason, NodeReason } from './reasons.ts'

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false

/** A reason added to a plan and not here does not compile. */
const same: [
  Same<ControllerReason, ControllerWaitReason>,
  Same<AttachmentReason, AttachmentWaitReason>,
  Same<NodeReason, NodeWaitReason>,
] = [true, true, true]

test('every reason of every plan leads to a cause', () => {
  assert.deepEqual(same, [true, true, true])
  for (const cause of Object.values({ ...controllerReasons, ...attachmentReasons, ...nodeReasons }))
    assert.ok(cause in causes, cause)
})

test('every CSI status but OK leads to a cause', () => {
  for (const status of Object.keys(statusCodes).filter((name) => name !== 'OK')) assert.ok(codeCauses[status], status)
})

/** Codes that never reach a user's operation, or say nothing that the operation's own cause does not. */
const withoutCause: ReadonlySet<string> = new Set([
  'AttachmentNotWritten',
  'AttachmentRemoved',
  'Dangling',
  'GroupPolicyMissing',
  'InlineVolume',
  'NoDevice',
  'NoLongerWanted',
  'NoSource',
  'NodeInfoRefused',
  'NodeUnreadable',
  'NotAVolumeName',
  'NotAttachable',
  'NotCsi',
  'ParametersInvalid',
  'PluginsInvalid',
  'RegistrationFailed',
  'RegistrationRefused',
  'SizeUnknown',
  'Unexpected',
  'VolumeDeleting',
  'VolumeModeMissing',
])

test('every code of a VolumeError in the sources leads to a cause, or is listed as saying nothing', () => {
  const root = join(import.meta.dirname, '../..')
  const unknown = globSync('{controllers,csi,node,plugins,volume}/**/*.ts', { cwd: root })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => [...readFileSync(join(root, file), 'utf8').matchAll(/(?:new VolumeError|refused)\('(\w+)'/g)])
    .map((match) => match[1]!)
    .filter((code) => codeCauses[code] === undefined && !withoutCause.has(code))
  assert.deepEqual([...new Set(unknown)], [])
})
