// Which controllers make up the control plane? The list, assembled once; main and sim only choose what they stand on.
import type { History } from '../client/history.ts'
import type { ClusterPlugin } from '../volume/plugin.ts'
import type { Registry } from '../volume/registry.ts'
import { createAttachmentController } from './attachment/controller.ts'
import type { AttachmentController, AttachmentOptions } from './attachment/controller.ts'
import { createBindingController } from './binding/controller.ts'
import type { BindingOptions } from './binding/controller.ts'
import type { Waiting } from './shared/waiting.ts'
import type { Controller, ControllerDeps } from './shared/controller.ts'
import { createEphemeralController } from './ephemeral/controller.ts'
import { createEvictionController } from './eviction/controller.ts'
import { createExpansionController } from './expansion/controller.ts'
import { createControllerHistory } from './shared/history.ts'
import { createPlacementController } from './placement/controller.ts'
import type { PlacementOptions } from './placement/controller.ts'
import { createProtectionController } from './protection/controller.ts'

export interface ControllersDeps extends ControllerDeps {
  readonly plugins: Registry<ClusterPlugin>
  /** Where the story of every object is kept, for `hawser why`. */
  readonly history?: History
  readonly options?: ControllersOptions
}

interface ControllersOptions {
  readonly binding?: BindingOptions
  readonly attachment?: AttachmentOptions
  /** The scheduler in miniature, and eviction by taints; absent means that somebody else places pods (`--bare`). */
  readonly placement?: PlacementOptions
  /** The `Unused` condition of releases after 1.35 (PCP-5). */
  readonly unusedCondition?: boolean
}

export interface Controllers extends AsyncDisposable {
  /** Resolves when every cache is complete and work has begun. */
  readonly started: Promise<void>
  /** Why nothing happens, per object (`Kind/key`), over all controllers. Attachments answer for themselves. */
  waiting(): ReadonlyMap<string, readonly Waiting[]>
  readonly attachment: AttachmentController
  /** Resolves when nothing is queued or running. */
  idle(): Promise<void>
}

export function createControllers(deps: ControllersDeps): Controllers {
  const { options = {}, plugins, history, ...rest } = deps
  const common: ControllerDeps = history ? { ...rest, ...createControllerHistory(history, rest.clock) } : rest
  const stack = new AsyncDisposableStack()
  const controllers: readonly Controller[] = [
    createBindingController({ ...common, plugins, ...optional(options.binding) }),
    createExpansionController({ ...common, plugins }),
    createProtectionController({ ...common, options: { unusedCondition: options.unusedCondition === true } }),
    createEphemeralController(common),
    // Whoever places pods also takes them off.
    ...(options.placement === undefined
      ? []
      : [createPlacementController({ ...common, options: options.placement }), createEvictionController(common)]),
  ]
  const attachment = createAttachmentController({
    ...common,
    registry: plugins,
    ...(history ? { history } : {}),
    recorder: deps.recorder('attachdetach-controller'),
    ...optional(options.attachment),
  })
  for (const controller of controllers) stack.use(controller)
  stack.use(attachment)
  return {
    attachment,
    started: Promise.all([deps.informers.synced(), attachment.started]).then(() => {}),
    waiting: () => merged(controllers.map((controller) => controller.waiting())),
    async idle() {
      for (const controller of controllers) await controller.idle()
      await attachment.idle()
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

function optional<T>(options: T | undefined): { readonly options?: T } {
  return options === undefined ? {} : { options }
}

function merged(maps: readonly ReadonlyMap<string, readonly Waiting[]>[]): ReadonlyMap<string, readonly Waiting[]> {
  const all = new Map<string, readonly Waiting[]>()
  for (const map of maps) for (const [key, waiting] of map) all.set(key, [...(all.get(key) ?? []), ...waiting])
  return all
}
