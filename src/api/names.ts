// Which strings must never be swapped by accident? Branded names and the parsers that are the only way to
// make one. The brand is erased at run time.
declare const brand: unique symbol

type Brand<Name extends string> = string & { readonly [brand]: Name }

/** The uid of a pod; it names directories on a node, so it must be a single path element. */
export type PodUid = Brand<'PodUid'>
export type NodeName = Brand<'NodeName'>
/** `kubernetes.io/nfs`, `kubernetes.io/csi`, `example.com/flex-driver`. */
export type PluginName = Brand<'PluginName'>
/** `kubernetes.io/csi/driver^handle`: one volume, wherever it is used. */
export type UniqueVolumeName = Brand<'UniqueVolumeName'>

/** What names a volume of a CSI driver; its unique name is that behind the plugin's. */
export const csiVolumeName = ({ driver, volumeHandle }: { readonly driver: string; readonly volumeHandle: string }) =>
  `${driver}^${volumeHandle}`

export const uniqueCsiVolumeName = (source: { readonly driver: string; readonly volumeHandle: string }) =>
  `kubernetes.io/csi/${csiVolumeName(source)}` as UniqueVolumeName // two parts that are not empty

export function podUid(text: string): PodUid {
  if (!isPathElement(text)) throw new Error(`invalid pod uid ${JSON.stringify(text)}`)
  return text as PodUid // checked above
}

export function nodeName(text: string): NodeName {
  if (!isPathElement(text)) throw new Error(`invalid node name ${JSON.stringify(text)}`)
  return text as NodeName // checked above
}

export function pluginName(text: string): PluginName {
  if (
    text.length > 253 ||
    !/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$/.test(text)
  ) {
    throw new Error(`invalid plugin name ${JSON.stringify(text)}`)
  }
  return text as PluginName // checked above
}

/** The plugin's name, a slash, and something that plugin understands (which may hold further slashes). */
export function uniqueVolumeName(text: string): UniqueVolumeName {
  if (!/^[^/]+\/[^]+$/.test(text) || text.includes('\0')) {
    throw new Error(`invalid unique volume name ${JSON.stringify(text)}`)
  }
  return text as UniqueVolumeName // checked above
}

function isPathElement(text: string): boolean {
  return text !== '' && text !== '.' && text !== '..' && text.length <= 253 && !/[/\0]/.test(text)
}
