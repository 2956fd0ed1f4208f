// Which operations bring a volume to a pod, and which take it away? The names that the node gives them.

export const mountOperations: readonly string[] = [
  'volume_mount',
  'map_volume',
  'verify_controller_attached_volume',
  'volume_fs_resize',
]

/** Making room for a pod, and cleaning up after it. */
export const podOperations: readonly string[] = ['pod_sync']

/** A container's start, whose step is the container's name. */
export const containerOperations: readonly string[] = ['container_start']

export const unmountOperations: readonly string[] = ['volume_unmount', 'unmap_volume', 'unmount_device', 'unmap_device']
