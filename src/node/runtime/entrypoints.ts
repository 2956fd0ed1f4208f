// Which program does a container run? Its own command, or what its image stands for. Images are names only here (nothing is
// pulled), so an image's program is known if somebody named it (--image-entrypoint), or if it is a pause image.

/** As Kubernetes reads an image: the first word is its ENTRYPOINT, the others its CMD. */
export interface ImageEntrypoint {
  /** A reference; without a tag or digest it stands for all of them. */
  readonly image: string
  readonly program: string
  /** Used when the container has no args of its own. */
  readonly defaultArgs: readonly string[]
}

export interface ContainerWords {
  readonly name: string
  readonly image: string
  readonly command: readonly string[]
  readonly args: readonly string[]
}

/** No retry can help: the pod or the settings of the node must change. */
export class NoCommandError extends Error {
  override readonly name = 'NoCommandError'
}

/** Answers the words to run; a command replaces the image's program, args replace its default words. */
export function commandLineOf(entrypoints: readonly ImageEntrypoint[], container: ContainerWords): readonly string[] {
  const { image, command, args } = container
  if (command.length > 0) return [...command, ...args]
  const found = entrypointOf(entrypoints, image)
  if (found) return [found.program, ...(args.length > 0 ? args : found.defaultArgs)]
  // As with an image that has no entrypoint of its own, such as busybox. An option is no program.
  if (args.length > 0 && !args[0]!.startsWith('-')) return args
  throw new NoCommandError(noCommand(container))
}

/** The user that an image names, where we know the image: root unless told. */
export const imageUser = ({ image = '', command = [] }: { image?: string; command?: readonly string[] }) =>
  command.length === 0 && isPause(image) ? pauseUser : undefined

/** The exact reference first, then the same name with any tag. */
function entrypointOf(entrypoints: readonly ImageEntrypoint[], image: string): ImageEntrypoint | undefined {
  const named = (wanted: string) => entrypoints.find((each) => each.image === wanted)
  return named(image) ?? named(withoutTag(image)) ?? (isPause(image) ? pause : undefined)
}

/** `host:5000/name:tag@digest` → `host:5000/name` */
const withoutTag = (image: string) => image.replace(/@.*$/, '').replace(/:[^:/]*$/, '')

const isPause = (image: string) => /(^|\/)pause$/.test(withoutTag(image))

/** The user of the images at registry.k8s.io. */
const pauseUser = 65535

/** A real process that waits until it is told to end, as the program in those images does. */
const pause: ImageEntrypoint = {
  image: 'pause',
  program: '/bin/sh',
  defaultArgs: ['-c', 'trap "exit 0" INT TERM; sleep infinity & wait'],
}

function noCommand({ name, image, args }: ContainerWords): string {
  const words = args.length > 0 ? ` and its args begin with the option "${args[0]}"` : ''
  return (
    `container ${name} has no command${words}, and the program of image ${image} is unknown: images are not pulled here. ` +
    `Give the container a command, or start the node with --image-entrypoint ${image}=PATH`
  )
}
